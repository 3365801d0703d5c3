//! Who the members are, as the membership entry of the log lists them.

use std::collections::{BTreeMap, BTreeSet};

use tripod_state::ids::NodeId;
use tripod_state::member::Listed;

use crate::types::Peer;

/// The members without what only the engine needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Shape {
    /// The sets of voters of which each must agree: two while one takes the place of the other.
    pub(crate) sets: Vec<BTreeSet<u64>>,
    /// Peer addresses of all members, learners included.
    pub(crate) nodes: BTreeMap<u64, String>,
}

impl Shape {
    pub(crate) fn of(membership: &openraft::Membership<u64, Peer>) -> Self {
        let nodes = membership.nodes().map(|(node, peer)| (*node, peer.address.clone()));
        Self { sets: membership.get_joint_config().clone(), nodes: nodes.collect() }
    }

    /// One set takes the place of another at the moment.
    pub(crate) fn is_joint(&self) -> bool {
        self.sets.len() > 1
    }

    /// The voters; while they change, those that there will be.
    pub(crate) fn voters(&self) -> BTreeSet<u64> {
        self.sets.last().cloned().unwrap_or_default()
    }

    pub(crate) fn contains(&self, node: u64) -> bool {
        self.nodes.contains_key(&node)
    }
}

/// The same for the state machine.
pub(crate) fn listed(membership: &openraft::Membership<u64, Peer>) -> Vec<Listed> {
    let voters: BTreeSet<u64> = membership.voter_ids().collect();
    let one = |(node, peer): (&u64, &Peer)| Listed {
        node: NodeId(*node),
        peer: peer.address.clone(),
        voter: voters.contains(node),
    };
    membership.nodes().map(one).collect()
}
