//! Who said what of which index, and what follows. Memory only, and bounded.

use std::collections::{BTreeMap, BTreeSet};

use super::{Fingerprint, Verdict};

/// Indexes that are remembered. A node that is further behind is not waited for.
const INDEXES_MAX: usize = 16;

/// What was said of one index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Too few have spoken.
    Open,
    /// A majority is of one mind, and nobody of another.
    Agreed,
    /// A majority is of one mind, and some are not.
    Diverged { majority: Fingerprint, of: Vec<u64>, others: BTreeMap<u64, Fingerprint> },
    /// There are several minds, and no majority for any of them so far.
    Split(BTreeMap<u64, Fingerprint>),
}

#[derive(Debug, Default)]
struct IndexFindings {
    /// Known once this node has been there itself.
    voters: Option<Vec<BTreeSet<u64>>>,
    said: BTreeMap<u64, Fingerprint>,
    /// The node's own state was judged here, by this node or the leader.
    settled: bool,
}

/// The memory of one node.
#[derive(Debug)]
pub(crate) struct Judge {
    node: u64,
    places: BTreeMap<u64, IndexFindings>,
}

impl Judge {
    pub(crate) fn new(node: u64) -> Self {
        Self { node, places: BTreeMap::new() }
    }

    /// Remembers this node's own state.
    pub(crate) fn own(&mut self, index: u64, voters: Vec<BTreeSet<u64>>, seen: Fingerprint) {
        let node = self.node;
        let place = self.places.entry(index).or_default();
        place.voters = Some(voters);
        // What was said after an earlier start of this node is of its earlier memory.
        if place.said.insert(node, seen) != Some(seen) {
            place.settled = false;
        }
        self.forget();
    }

    /// Remembers what another node says of its state.
    pub(crate) fn told(&mut self, node: u64, index: u64, seen: Fingerprint) {
        self.places.entry(index).or_default().said.insert(node, seen);
        self.forget();
    }

    fn forget(&mut self) {
        while self.places.len() > INDEXES_MAX {
            self.places.pop_first();
        }
    }

    /// The last index at which this node has been.
    pub(crate) fn newest_own(&self) -> Option<u64> {
        self.places.iter().rev().find(|(_, place)| place.voters.is_some()).map(|(index, _)| *index)
    }

    /// This node's own states that nobody has judged.
    pub(crate) fn unsettled(&self) -> Vec<(u64, Fingerprint)> {
        let open = self.places.iter().filter(|(_, place)| !place.settled && place.voters.is_some());
        open.filter_map(|(index, place)| Some((*index, *place.said.get(&self.node)?))).collect()
    }

    /// Whether a node has said anything of an index.
    pub(crate) fn has_said(&self, node: u64, index: u64) -> bool {
        self.places.get(&index).is_some_and(|place| place.said.contains_key(&node))
    }

    /// This node's own state at that index is judged. Says whether it was not before.
    pub(crate) fn settle(&mut self, index: u64) -> bool {
        self.places.get_mut(&index).is_some_and(|place| !std::mem::replace(&mut place.settled, true))
    }

    /// A new leader has heard nothing yet.
    pub(crate) fn unsettle(&mut self) {
        self.places.values_mut().for_each(|place| place.settled = false);
    }

    /// What follows from all that was said of an index.
    pub(crate) fn finding(&self, index: u64) -> Finding {
        let Some(IndexFindings { voters: Some(voters), said, .. }) = self.places.get(&index) else {
            return Finding::Open;
        };
        let minds: BTreeSet<Fingerprint> = said.values().copied().collect();
        let majority = minds.iter().copied().find(|mind| is_majority(voters, said, *mind));
        let Some(majority) = majority else {
            return if minds.len() > 1 { Finding::Split(said.clone()) } else { Finding::Open };
        };
        let (of, others): (Vec<_>, Vec<_>) = said.iter().partition(|(_, mind)| **mind == majority);
        if others.is_empty() {
            return Finding::Agreed;
        }
        Finding::Diverged {
            majority,
            of: of.into_iter().map(|(node, _)| *node).collect(),
            others: others.into_iter().map(|(node, mind)| (*node, *mind)).collect(),
        }
    }

    /// What another node is to be told of its state.
    pub(crate) fn verdict(&self, node: u64, index: u64) -> Verdict {
        let known = self.places.get(&index).is_some_and(|place| place.voters.is_some());
        if !known {
            // This node has been further on, and not there: it never will be.
            let passed = self.newest_own().is_some_and(|newest| newest > index);
            return if passed { Verdict::Never } else { Verdict::Open };
        }
        match self.finding(index) {
            Finding::Open | Finding::Split(_) => Verdict::Open,
            Finding::Agreed => Verdict::Agrees,
            Finding::Diverged { majority, of, .. } if !of.contains(&node) => {
                Verdict::Diverged { majority, of }
            }
            Finding::Diverged { .. } => Verdict::Agrees,
        }
    }
}

/// Whether a majority of the voters, of both sets during a change, is of this mind.
fn is_majority(voters: &[BTreeSet<u64>], said: &BTreeMap<u64, Fingerprint>, mind: Fingerprint) -> bool {
    let of = |set: &BTreeSet<u64>| set.iter().filter(|node| said.get(node) == Some(&mind)).count();
    !voters.is_empty() && voters.iter().all(|set| of(set) > set.len() / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mind(digest: u64) -> Fingerprint {
        Fingerprint { term: 1, digest }
    }

    /// Node 1 of three, at index 5 with digest 7.
    fn judge() -> Judge {
        let mut judge = Judge::new(1);
        judge.own(5, vec![BTreeSet::from([1, 2, 3])], mind(7));
        judge
    }

    #[test]
    fn two_of_three_are_enough_to_agree_and_a_late_third_may_agree_too() {
        let mut judge = judge();
        assert_eq!(judge.finding(5), Finding::Open);
        judge.told(2, 5, mind(7));
        assert_eq!(judge.finding(5), Finding::Agreed);
        assert_eq!(judge.verdict(2, 5), Verdict::Agrees);
        judge.told(3, 5, mind(7));
        assert_eq!(judge.finding(5), Finding::Agreed);
    }

    #[test]
    fn the_one_that_differs_is_named_be_it_the_leader() {
        let mut other = judge();
        other.told(2, 5, mind(7));
        other.told(3, 5, mind(8));
        let diverged = Verdict::Diverged { majority: mind(7), of: vec![1, 2] };
        assert_eq!(other.verdict(3, 5), diverged);
        assert_eq!(other.verdict(2, 5), Verdict::Agrees);

        let mut own = judge();
        own.told(2, 5, mind(8));
        own.told(3, 5, mind(8));
        let others = BTreeMap::from([(1, mind(7))]);
        assert_eq!(own.finding(5), Finding::Diverged { majority: mind(8), of: vec![2, 3], others });
        assert_eq!(own.verdict(2, 5), Verdict::Agrees);
    }

    #[test]
    fn one_against_one_is_no_verdict() {
        let mut judge = judge();
        judge.told(2, 5, mind(8));
        assert!(matches!(judge.finding(5), Finding::Split(said) if said.len() == 2));
        assert_eq!(judge.verdict(2, 5), Verdict::Open);
    }

    #[test]
    fn a_learner_has_no_voice_but_is_judged() {
        let mut judge = judge();
        judge.told(4, 5, mind(8));
        assert!(matches!(judge.finding(5), Finding::Split(_)));
        judge.told(2, 5, mind(7));
        assert!(matches!(judge.verdict(4, 5), Verdict::Diverged { .. }));
    }

    #[test]
    fn during_a_change_of_membership_both_sets_must_be_of_one_mind() {
        let mut judge = Judge::new(1);
        judge.own(5, vec![BTreeSet::from([1, 2, 3]), BTreeSet::from([1, 4, 5])], mind(7));
        judge.told(2, 5, mind(7));
        assert_eq!(judge.finding(5), Finding::Open);
        judge.told(4, 5, mind(7));
        assert_eq!(judge.finding(5), Finding::Agreed);
    }

    #[test]
    fn another_term_at_one_index_is_another_state() {
        let mut judge = judge();
        judge.told(2, 5, Fingerprint { term: 2, digest: 7 });
        assert!(matches!(judge.finding(5), Finding::Split(_)));
    }

    #[test]
    fn an_index_where_this_node_never_was_is_not_waited_for() {
        let mut judge = judge();
        judge.told(2, 4, mind(1));
        judge.told(2, 6, mind(1));
        assert_eq!(judge.verdict(2, 4), Verdict::Never);
        assert_eq!(judge.verdict(2, 6), Verdict::Open);
    }

    #[test]
    fn what_was_judged_is_told_again_to_a_new_leader_only() {
        let mut judge = judge();
        assert_eq!(judge.unsettled(), [(5, mind(7))]);
        assert!(judge.settle(5));
        assert!(!judge.settle(5));
        assert_eq!(judge.unsettled(), []);
        judge.unsettle();
        assert_eq!(judge.unsettled(), [(5, mind(7))]);
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut judge = judge();
        for index in 0..1000 {
            judge.told(2, index, mind(1));
        }
        assert_eq!(judge.places.len(), INDEXES_MAX);
    }
}
