//! What a node without data asks, what the others answer, and what follows from it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::base::types::Vote;

/// Asked by a node without data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) node: u64,
    /// It knows that it had data. A leader makes ready to send it everything anew.
    pub(crate) lost: bool,
    /// It takes entries now. A leader that has no news would send none.
    pub(crate) ready: bool,
}

/// Where the asked node stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PeerState {
    pub(crate) vote: Vote,
    /// The last entry's index.
    pub(crate) last_log: Option<u64>,
    /// It leads in the term of its vote, and has applied an entry of it.
    pub(crate) leads: bool,
    /// The voters as it knows them.
    pub(crate) voters: BTreeSet<u64>,
    /// The asker had data: it announced itself, or it acknowledged entries to this leader.
    pub(crate) had_data: bool,
}

#[cfg(test)]
impl PeerState {
    /// Of one of three voters that follows node 2.
    pub(crate) fn of_a_follower() -> Self {
        let voters = BTreeSet::from([1, 2, 3]);
        Self { vote: Vote::new(3, 2), last_log: Some(43), leads: false, voters, had_data: false }
    }
}

/// What the answers amount to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Ask again; in words, what is missing.
    Wait(String),
    /// Ask again: nobody has formed the cluster yet, or those who did go by the same list, and these others have
    /// not answered.
    Forming(BTreeSet<u64>),
    /// A first start.
    Fresh,
    /// This node had data.
    Lost,
    /// Entries may be taken. The node is whole when it has applied `target`.
    Learn { vote: Vote, target: u64 },
    /// It has lost its data, and the members were changed since the first start: it knows no address of these
    /// voters, so it can never have asked all of them.
    Strangers(BTreeSet<u64>),
}

/// Decides for `node`, one of `initial`. An answer of `None` is one of a program that knows no such
/// question. `lost` tells whether the node knows already that it had data.
pub(crate) fn decide(
    node: u64,
    initial: &BTreeSet<u64>,
    lost: bool,
    answers: &BTreeMap<u64, Option<PeerState>>,
) -> Decision {
    let told: BTreeMap<u64, &PeerState> =
        answers.iter().filter_map(|(node, answer)| Some((*node, answer.as_ref()?))).collect();
    if lost {
        return learn(node, initial, &told);
    }
    if told.values().any(|standing| standing.had_data) {
        return Decision::Lost;
    }
    let counted = electorate(initial, &told);
    let heard = counted.iter().filter(|voter| **voter == node || answers.contains_key(voter)).count();
    if heard > counted.len() / 2 {
        return Decision::Fresh;
    }
    if counted == *initial {
        let silent = initial.iter().filter(|voter| **voter != node && !answers.contains_key(voter));
        return Decision::Forming(silent.copied().collect());
    }
    Decision::Wait(format!("{heard} of {} nodes answered; a majority must", counted.len()))
}

/// Of whom a majority must be asked: the voters, as whoever is in the highest term knows them, once there are any.
fn electorate(initial: &BTreeSet<u64>, told: &BTreeMap<u64, &PeerState>) -> BTreeSet<u64> {
    let formed = told.values().filter(|standing| !standing.voters.is_empty());
    let newest = formed.max_by_key(|standing| (standing.vote.leader_id.term, standing.leads));
    newest.map_or(initial, |standing| &standing.voters).clone()
}

fn learn(node: u64, initial: &BTreeSet<u64>, told: &BTreeMap<u64, &PeerState>) -> Decision {
    let newest = told.values().max_by_key(|standing| (standing.vote.leader_id.term, standing.leads));
    let Some(leader) = newest.filter(|standing| standing.leads) else {
        return Decision::Wait("no leader among the nodes that answered".into());
    };
    let silent = leader.voters.iter().filter(|voter| **voter != node && !told.contains_key(voter));
    let (known, strangers): (BTreeSet<u64>, BTreeSet<u64>) =
        silent.partition(|voter| initial.contains(voter));
    if !strangers.is_empty() {
        return Decision::Strangers(strangers);
    }
    if !known.is_empty() {
        return Decision::Wait(format!("no answer of {}", named(&known)));
    }
    Decision::Learn { vote: leader.vote, target: leader.last_log.unwrap_or(0) }
}

/// `node 3`, `nodes 3, 4`.
pub(crate) fn counted(nodes: &BTreeSet<u64>) -> String {
    let ids = nodes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    if nodes.len() == 1 { format!("node {ids}") } else { format!("nodes {ids}") }
}

/// `node 3, node 4`.
pub(crate) fn named(nodes: &BTreeSet<u64>) -> String {
    nodes.iter().map(|node| format!("node {node}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    //! Numbers as in `n7` are those of the walk-through of a new operator.

    use super::*;

    fn standing(term: u64, leads: bool) -> PeerState {
        PeerState { vote: Vote::new(term, 2), last_log: Some(40 + term), leads, ..PeerState::of_a_follower() }
    }

    fn of_three(lost: bool, answers: &[(u64, PeerState)]) -> Decision {
        let answers = answers.iter().map(|(node, answer)| (*node, Some(answer.clone()))).collect();
        decide(1, &BTreeSet::from([1, 2, 3]), lost, &answers)
    }

    #[test]
    fn a_first_start_needs_a_majority_that_can_be_asked() {
        assert_eq!(of_three(false, &[]), Decision::Forming(BTreeSet::from([2, 3])));
        let empty = PeerState { voters: BTreeSet::new(), ..standing(0, false) };
        assert_eq!(of_three(false, &[(2, empty)]), Decision::Fresh);
        assert_eq!(of_three(false, &[(2, standing(3, true)), (3, standing(3, false))]), Decision::Fresh);
        assert_eq!(decide(1, &BTreeSet::from([1]), false, &BTreeMap::new()), Decision::Fresh);
        let old_program = BTreeMap::from([(2, None)]);
        assert_eq!(decide(1, &BTreeSet::from([1, 2, 3]), false, &old_program), Decision::Fresh);
    }

    /// Only who goes by another list is a reason to doubt one's own.
    #[test]
    fn n11_a_first_start_waits_for_nodes_by_name_and_doubts_no_list_that_others_share() {
        let of_five = BTreeSet::from([1, 2, 3, 4, 5]);
        let formed = PeerState { voters: of_five.clone(), ..standing(3, true) };
        let answers = BTreeMap::from([(2, Some(formed))]);
        let decision = decide(1, &of_five, false, &answers);
        assert_eq!(decision, Decision::Forming(BTreeSet::from([3, 4, 5])));
        assert_eq!(counted(&BTreeSet::from([3, 4, 5])), "nodes 3, 4, 5");
        assert_eq!(counted(&BTreeSet::from([3])), "node 3");
        let others =
            BTreeMap::from([(2, Some(PeerState { voters: BTreeSet::from([2, 6, 7]), ..standing(3, true) }))]);
        assert!(matches!(decide(1, &of_five, false, &others), Decision::Wait(_)));
    }

    #[test]
    fn one_node_that_remembers_is_enough_to_have_lost_everything() {
        let remembers = PeerState { had_data: true, ..standing(3, false) };
        assert_eq!(of_three(false, &[(2, remembers.clone())]), Decision::Lost);
        assert_eq!(of_three(false, &[(2, standing(3, true)), (3, remembers)]), Decision::Lost);
    }

    #[test]
    fn entries_are_taken_when_all_others_answered_and_the_newest_term_has_a_leader() {
        let learn = Decision::Learn { vote: Vote::new(3, 2), target: 43 };
        assert_eq!(of_three(true, &[(2, standing(3, true)), (3, standing(3, false))]), learn);
        assert_eq!(of_three(true, &[(2, standing(2, true)), (3, standing(3, true))]), learn);
    }

    #[test]
    fn a_node_that_did_not_answer_may_lead_in_a_later_term() {
        let decision = of_three(true, &[(2, standing(3, true))]);
        assert_eq!(decision, Decision::Wait("no answer of node 3".into()));
        let program_too_old = BTreeMap::from([(2, Some(standing(3, true))), (3, None)]);
        let decision = decide(1, &BTreeSet::from([1, 2, 3]), true, &program_too_old);
        assert_eq!(decision, Decision::Wait("no answer of node 3".into()));
    }

    #[test]
    fn a_candidate_of_a_later_term_may_hold_the_forgotten_vote() {
        let decision = of_three(true, &[(2, standing(3, true)), (3, standing(4, false))]);
        assert!(matches!(decision, Decision::Wait(_)), "{decision:?}");
    }

    #[test]
    fn voters_that_came_later_must_answer_too() {
        let leader = PeerState { voters: BTreeSet::from([1, 2, 4]), ..standing(3, true) };
        let decision = of_three(true, &[(2, leader.clone()), (3, standing(3, false))]);
        assert_eq!(decision, Decision::Strangers(BTreeSet::from([4])));
        let answers = [(2, leader), (4, standing(1, false))];
        assert!(matches!(of_three(true, &answers), Decision::Learn { .. }), "it is where node 3 was");
    }

    #[test]
    fn a_majority_is_one_of_the_voters_that_there_are_now() {
        let grown = PeerState { voters: BTreeSet::from([1, 2, 4, 5, 6]), ..standing(3, true) };
        let decision = of_three(false, &[(2, grown.clone()), (3, standing(2, false))]);
        assert_eq!(decision, Decision::Wait("2 of 5 nodes answered; a majority must".into()));
        assert_eq!(of_three(false, &[(2, grown), (4, standing(2, false))]), Decision::Fresh);
    }
}
