//! What to do next for a change, given who the members are. Asked again after every step, so it does not
//! matter whose steps the earlier ones were, nor how far they came.

use std::collections::{BTreeMap, BTreeSet};

use openraft::ChangeMembers;
use tripod_state::member::{Change, Ending, Open};

use crate::apply::cluster_configuration::ClusterConfiguration;
use crate::base::types::Peer;

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Another membership entry.
    Enter(Entry),
    /// The same, once this learner has caught up.
    EnterWhenCaughtUp(u64, Entry),
    /// This node would take itself out: another one must lead first.
    HandOver,
    /// It is over.
    End(Ending),
}

/// A membership entry as the engine makes it; one that changes voters makes two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) change: ChangeMembers<u64, Peer>,
    /// Voters that are voters no more stay as learners.
    pub(super) retain: bool,
}

impl Entry {
    fn new(change: ChangeMembers<u64, Peer>, retain: bool) -> Self {
        Self { change, retain }
    }

    /// From two sets of voters to the last of them.
    pub(super) fn settle(configuration: &ClusterConfiguration, retain: bool) -> Self {
        Self::new(ChangeMembers::ReplaceAllVoters(configuration.voters()), retain)
    }
}

/// The next step of `open` on the leader `this`.
pub(super) fn next(open: &Open, configuration: &ClusterConfiguration, this: u64) -> Step {
    let voters = configuration.voters();
    if configuration.is_joint() {
        // A leader is gone between the two entries of its change. Whose was it? There is one at a time.
        let leaves = matches!(open.change, Change::Remove { .. } | Change::Replace { .. });
        return Step::Enter(Entry::settle(configuration, !leaves));
    }
    let node = open.node.0;
    let step = match &open.change {
        Change::Add { peer } => add(configuration, node, peer),
        Change::Promote { .. } => promote(configuration, &voters, node),
        Change::Demote { .. } if !voters.contains(&node) => Step::End(Ending::Done),
        Change::Demote { .. } => take_out(&voters, node, this, true),
        Change::Remove { .. } => remove(configuration, &voters, node, this),
        Change::Move { peer, .. } if configuration.nodes.get(&node) == Some(peer) => Step::End(Ending::Done),
        Change::Move { peer, .. } => {
            Step::Enter(Entry::new(ChangeMembers::SetNodes(BTreeMap::from([(node, at(peer))])), true))
        }
        Change::Replace { old, peer } => replace(configuration, &voters, (old.0, node, peer), this),
    };
    match step {
        Step::End(ending) => Step::End(ending),
        _ if open.cancelled => Step::End(Ending::Cancelled),
        step => step,
    }
}

fn at(peer: &str) -> Peer {
    Peer { address: peer.to_owned() }
}

fn add(configuration: &ClusterConfiguration, node: u64, peer: &str) -> Step {
    if configuration.contains(node) {
        return Step::End(Ending::Done);
    }
    Step::Enter(Entry::new(ChangeMembers::AddNodes(BTreeMap::from([(node, at(peer))])), true))
}

fn promote(configuration: &ClusterConfiguration, voters: &BTreeSet<u64>, node: u64) -> Step {
    if voters.contains(&node) {
        return Step::End(Ending::Done);
    }
    if !configuration.contains(node) {
        return Step::End(Ending::Failed(format!("node {node} is no member any more")));
    }
    Step::EnterWhenCaughtUp(node, Entry::new(ChangeMembers::AddVoterIds(BTreeSet::from([node])), true))
}

fn take_out(voters: &BTreeSet<u64>, node: u64, this: u64, retain: bool) -> Step {
    if voters.len() == 1 {
        return Step::End(Ending::Failed(format!("node {node} is the only voter")));
    }
    if node == this {
        return Step::HandOver;
    }
    Step::Enter(Entry::new(ChangeMembers::RemoveVoters(BTreeSet::from([node])), retain))
}

fn remove(configuration: &ClusterConfiguration, voters: &BTreeSet<u64>, node: u64, this: u64) -> Step {
    if voters.contains(&node) {
        return take_out(voters, node, this, false);
    }
    if !configuration.contains(node) {
        return Step::End(Ending::Done);
    }
    Step::Enter(Entry::new(ChangeMembers::RemoveNodes(BTreeSet::from([node])), false))
}

fn replace(
    configuration: &ClusterConfiguration,
    voters: &BTreeSet<u64>,
    (old, new, peer): (u64, u64, &str),
    this: u64,
) -> Step {
    if !configuration.contains(old) {
        return Step::End(Ending::Done);
    }
    if !configuration.contains(new) {
        return add(configuration, new, peer);
    }
    if !voters.contains(&old) {
        // A learner, whose place is that of a learner.
        return remove(configuration, voters, old, this);
    }
    if old == this && voters.len() == 1 {
        // Nobody else could take over: the new one votes beside it first.
        let beside = ChangeMembers::AddVoterIds(BTreeSet::from([new]));
        return Step::EnterWhenCaughtUp(new, Entry::new(beside, true));
    }
    if old == this {
        return Step::HandOver;
    }
    let swap = ChangeMembers::Batch(vec![
        ChangeMembers::AddVoterIds(BTreeSet::from([new])),
        ChangeMembers::RemoveVoters(BTreeSet::from([old])),
    ]);
    Step::EnterWhenCaughtUp(new, Entry::new(swap, false))
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::{ChangeId, NodeId, TimeMs};

    use super::*;

    fn configuration(sets: &[&[u64]], nodes: &[u64]) -> ClusterConfiguration {
        ClusterConfiguration {
            sets: sets.iter().map(|set| set.iter().copied().collect()).collect(),
            nodes: nodes.iter().map(|node| (*node, format!("h:{node}"))).collect(),
        }
    }

    fn open(change: Change, node: u64) -> Open {
        Open {
            id: ChangeId(9),
            change,
            node: NodeId(node),
            by: String::new(),
            since: TimeMs(0),
            cancelled: false,
        }
    }

    fn replace_2_by_4() -> Open {
        open(Change::Replace { old: NodeId(2), peer: "h:4".to_owned() }, 4)
    }

    #[test]
    fn a_replacement_adds_waits_and_swaps_in_one_change() {
        let open = replace_2_by_4();
        let added = next(&open, &configuration(&[&[1, 2, 3]], &[1, 2, 3]), 1);
        let Step::Enter(Entry { change: ChangeMembers::AddNodes(nodes), .. }) = added else {
            panic!("{added:?}")
        };
        assert_eq!(nodes[&4].address, "h:4");
        let swapped = next(&open, &configuration(&[&[1, 2, 3]], &[1, 2, 3, 4]), 1);
        let Step::EnterWhenCaughtUp(4, Entry { change: ChangeMembers::Batch(parts), retain: false }) =
            swapped
        else {
            panic!("{swapped:?}")
        };
        assert_eq!(parts.len(), 2);
        let between = next(&open, &configuration(&[&[1, 2, 3], &[1, 3, 4]], &[1, 2, 3, 4]), 3);
        let settle = ChangeMembers::ReplaceAllVoters(BTreeSet::from([1, 3, 4]));
        assert_eq!(between, Step::Enter(Entry::new(settle, false)));
        assert_eq!(next(&open, &configuration(&[&[1, 3, 4]], &[1, 3, 4]), 3), Step::End(Ending::Done));
    }

    /// Seed 194 of the simulation has seen it wait for ever for somebody to hand over to.
    #[test]
    fn the_only_voter_is_replaced_by_one_that_votes_beside_it_first() {
        let open = replace_2_by_4();
        let beside = next(&open, &configuration(&[&[2]], &[2, 4]), 2);
        let add = ChangeMembers::AddVoterIds(BTreeSet::from([4]));
        assert_eq!(beside, Step::EnterWhenCaughtUp(4, Entry::new(add, true)));
        let both = configuration(&[&[2, 4]], &[2, 4]);
        assert_eq!(next(&open, &both, 2), Step::HandOver);
        assert!(matches!(next(&open, &both, 4), Step::EnterWhenCaughtUp(4, _)));
        assert_eq!(next(&open, &configuration(&[&[4]], &[4]), 4), Step::End(Ending::Done));
    }

    #[test]
    fn a_leader_does_not_take_itself_out() {
        let members = configuration(&[&[1, 2, 3]], &[1, 2, 3, 4]);
        for change in [Change::Remove { node: NodeId(2) }, Change::Demote { node: NodeId(2) }] {
            assert_eq!(next(&open(change.clone(), 2), &members, 2), Step::HandOver);
            assert!(matches!(next(&open(change, 2), &members, 1), Step::Enter(_)));
        }
        assert_eq!(next(&replace_2_by_4(), &members, 2), Step::HandOver);
    }

    #[test]
    fn a_change_that_was_left_between_two_sets_is_settled_as_it_was_meant() {
        let between = configuration(&[&[1, 2, 3], &[1, 2]], &[1, 2, 3]);
        let retained = |change: Change| match next(&open(change, 3), &between, 1) {
            Step::Enter(Entry { change: ChangeMembers::ReplaceAllVoters(voters), retain }) => {
                assert_eq!(voters, BTreeSet::from([1, 2]));
                retain
            }
            other => panic!("{other:?}"),
        };
        assert!(!retained(Change::Remove { node: NodeId(3) }));
        assert!(retained(Change::Demote { node: NodeId(3) }));
    }

    #[test]
    fn what_was_given_up_ends_where_the_voters_agree() {
        let cancelled = Open { cancelled: true, ..replace_2_by_4() };
        let members = configuration(&[&[1, 2, 3]], &[1, 2, 3, 4]);
        assert_eq!(next(&cancelled, &members, 1), Step::End(Ending::Cancelled));
        let between = configuration(&[&[1, 2, 3], &[1, 3, 4]], &[1, 2, 3, 4]);
        assert!(matches!(next(&cancelled, &between, 1), Step::Enter(_)));
        let done = configuration(&[&[1, 3, 4]], &[1, 3, 4]);
        assert_eq!(next(&cancelled, &done, 1), Step::End(Ending::Done), "it was too late");
    }
}
