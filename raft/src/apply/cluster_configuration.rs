//! Who the members are, as the membership entry of the log lists them.

use std::collections::{BTreeMap, BTreeSet};

use tripod_state::ids::NodeId;
use tripod_state::member::Listed;

use crate::base::types::{LogId, Peer};

/// The members without what only the engine needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ClusterConfiguration {
    /// The sets of voters of which each must agree: two while one takes the place of the other.
    pub(crate) sets: Vec<BTreeSet<u64>>,
    /// Peer addresses of all members, learners included.
    pub(crate) nodes: BTreeMap<u64, String>,
}

impl ClusterConfiguration {
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

/// Writes into the node's log who the members are from now on; every replica does, in the order of the log.
pub(crate) fn tell_members(id: LogId, membership: &openraft::Membership<u64, Peer>) {
    let sets: Vec<String> = membership.get_joint_config().iter().map(words).collect();
    let learners: BTreeSet<u64> = membership.learner_ids().collect();
    tracing::info!(
        index = id.index,
        term = id.leader_id.term,
        voters = sets.join("|"),
        learners = words(&learners),
        "the members are listed"
    );
}

fn words(nodes: &BTreeSet<u64>) -> String {
    nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
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
