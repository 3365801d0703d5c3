//! What a leader has applied, and its leadership itself, rest on a majority of voters. A learner, and a node that
//! was removed, count for nothing.

use std::collections::{BTreeMap, BTreeSet};

use tripod_raft::SeenMembers;
use tripod_state::ids::{NodeId, Term};

use super::one_membership::{OneMembership, decides, words};
use crate::observation::Sample;

/// Leaders, and who followed them when they were seen first.
#[derive(Debug, Default)]
pub(crate) struct VotersDecide {
    elected: BTreeMap<(Term, NodeId), Elected>,
}

#[derive(Debug)]
enum Elected {
    /// Those that had promised to follow no earlier leader.
    By(BTreeSet<NodeId>),
    Judged,
}

impl VotersDecide {
    /// A leader has applied `sample.applied`, and these nodes hold what is at that index.
    ///
    /// A leader that goes from one set of voters to another must have asked the one it goes to for everything
    /// from then on, and the one it comes from for everything before: the last set of the list that it has
    /// applied holds in both cases.
    pub(crate) fn applied(
        &self,
        leader: &Sample,
        lists: &OneMembership,
        holders: &BTreeSet<NodeId>,
    ) -> Result<(), String> {
        let Some(members) = lists.at(leader.applied) else { return Ok(()) };
        let last =
            SeenMembers { sets: members.sets.last().cloned().into_iter().collect(), ..members.clone() };
        if decides(&last, holders) {
            return Ok(());
        }
        Err(format!(
            "node {} leads and has applied {}, which only {holders:?} hold, of {}",
            leader.node,
            leader.applied,
            words(members)
        ))
    }

    /// A node was found to lead, while these nodes had promised to follow no earlier leader.
    pub(crate) fn leads(&mut self, leader: &Sample, promised: &BTreeSet<NodeId>) {
        let vote = (leader.term, leader.node);
        self.elected.entry(vote).or_insert_with(|| Elected::By(promised.clone()));
    }

    /// The leader has applied all of earlier terms: whom it had to ask is known now.
    pub(crate) fn ready(&mut self, leader: &Sample, lists: &OneMembership) -> Result<(), String> {
        let Some(elected) = self.elected.get_mut(&(leader.term, leader.node)) else { return Ok(()) };
        let Elected::By(promised) = std::mem::replace(elected, Elected::Judged) else { return Ok(()) };
        let Some(members) = lists.before(leader.term, leader.node) else { return Ok(()) };
        if decides(members, &promised) {
            return Ok(());
        }
        Err(format!(
            "node {} was elected in term {} by {promised:?} at most, of {}",
            leader.node,
            leader.term,
            words(members)
        ))
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::LogIndex;

    use super::*;
    use crate::observation::{Life, LogLine, SimTime};

    fn ids(ids: &[u64]) -> BTreeSet<NodeId> {
        ids.iter().copied().map(NodeId).collect()
    }

    fn lists(sets: &[&[u64]], learners: &[u64]) -> OneMembership {
        let sets: Vec<_> = sets.iter().map(|set| ids(set)).collect();
        let nodes = sets.iter().flatten().copied().chain(ids(learners)).collect();
        let line = LogLine { index: LogIndex(1), term: Term(1), leader: NodeId(1), digest: 0 };
        let mut lists = OneMembership::default();
        lists.entered(SimTime::default(), line, &SeenMembers { sets, nodes }).unwrap();
        lists
    }

    fn leader(term: u64) -> Sample {
        Sample {
            node: NodeId(1),
            life: Life(1),
            leads: true,
            term: Term(term),
            last_log: LogIndex(7),
            committed: LogIndex(7),
            applied: LogIndex(7),
        }
    }

    #[test]
    fn a_learner_that_is_counted_is_noticed() {
        let (rule, lists) = (VotersDecide::default(), lists(&[&[1, 2, 3]], &[4, 5]));
        assert_eq!(rule.applied(&leader(1), &lists, &ids(&[1, 3])), Ok(()));
        let broken = rule.applied(&leader(1), &lists, &ids(&[1, 4, 5])).unwrap_err();
        assert!(broken.contains("of voters [1,2,3], learners [4,5]"), "{broken}");
    }

    #[test]
    fn the_set_that_there_will_be_must_hold_what_was_applied() {
        let (rule, lists) = (VotersDecide::default(), lists(&[&[1, 2, 3], &[1, 2, 3, 4, 5]], &[]));
        assert_eq!(rule.applied(&leader(1), &lists, &ids(&[1, 4, 5])), Ok(()));
        assert!(rule.applied(&leader(1), &lists, &ids(&[2, 3])).is_err());
    }

    #[test]
    fn a_vote_of_a_learner_or_of_a_node_that_left_is_noticed() {
        let lists = lists(&[&[1, 2, 3]], &[4]);
        let mut rule = VotersDecide::default();
        rule.leads(&leader(2), &ids(&[1, 2]));
        assert_eq!(rule.ready(&leader(2), &lists), Ok(()));
        rule.leads(&leader(3), &ids(&[1, 4, 9]));
        rule.leads(&leader(3), &ids(&[1, 2, 3]));
        let broken = rule.ready(&leader(3), &lists).unwrap_err();
        assert!(broken.starts_with("node 1 was elected in term 3 by"), "{broken}");
        assert_eq!(rule.ready(&leader(3), &lists), Ok(()), "said once");
    }
}
