//! Who votes, who only listens, and who answers.

use std::collections::BTreeSet;

use tripod_state::ids::NodeId;

use crate::apply::cluster_configuration::ClusterConfiguration;

/// The members at one moment, or as a change will leave them. In ascending order of id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Votes {
    pub voters: Vec<NodeId>,
    pub learners: Vec<NodeId>,
    /// Voters that do not answer the leader now.
    silent: Vec<NodeId>,
}

impl Votes {
    pub(super) fn new(voters: &BTreeSet<u64>, all: &BTreeSet<u64>, answering: &BTreeSet<u64>) -> Self {
        let ids = |nodes: &mut dyn Iterator<Item = &u64>| nodes.map(|node| NodeId(*node)).collect();
        Self {
            voters: ids(&mut voters.iter()),
            learners: ids(&mut all.difference(voters)),
            silent: ids(&mut voters.difference(answering)),
        }
    }

    pub(super) fn of(configuration: &ClusterConfiguration, answering: &BTreeSet<u64>) -> Self {
        Self::new(&configuration.voters(), &configuration.nodes.keys().copied().collect(), answering)
    }

    /// How many voters must agree.
    #[must_use]
    pub fn quorum(&self) -> usize {
        self.voters.len() / 2 + 1
    }

    /// How many voters answer the leader now.
    #[must_use]
    pub fn answering(&self) -> usize {
        self.voters.len() - self.silent.len()
    }

    /// The voters that do not.
    #[must_use]
    pub fn silent(&self) -> &[NodeId] {
        &self.silent
    }

    /// Enough of them answer.
    #[must_use]
    pub fn has_quorum(&self) -> bool {
        self.answering() >= self.quorum()
    }
}
