//! The generation of a cluster of MindSpore never falls, nodes are told of none that has not come, and no two nodes of a role
//! have one rank.

use std::collections::{BTreeMap, BTreeSet};

use tripod_state::ids::{JobId, NodeId};

use crate::observation::Life;

/// A job's cluster in the state of one node of ours, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterSeen {
    /// Which protocol its nodes speak: a job may have a cluster of each.
    pub(crate) protocol: &'static str,
    pub(crate) job: JobId,
    pub(crate) generation: u64,
    /// In which all nodes were told of each other last; 0: none yet.
    pub(crate) published: u64,
    /// The role and the rank of each node that has one.
    pub(crate) ranks: Vec<(&'static str, u32)>,
}

/// The last generation of each cluster on each node, in its present life.
#[derive(Debug, Default)]
pub(crate) struct ClusterGenerations {
    last: BTreeMap<(NodeId, JobId, &'static str), (Life, u64)>,
    looks: u64,
}

impl ClusterGenerations {
    pub(crate) fn see(&mut self, node: NodeId, life: Life, seen: &ClusterSeen) -> Result<(), String> {
        let ClusterSeen { protocol, job, generation, published, ranks } = seen;
        self.looks += 1;
        let before = self.last.insert((node, *job, *protocol), (life, *generation));
        if let Some((same, before)) = before
            && same == life
            && *generation < before
        {
            return Err(format!(
                "on node {node} the {protocol} of job {job} was in generation {before}, and is in {generation}"
            ));
        }
        if published > generation {
            return Err(format!(
                "on node {node} the {protocol} of job {job} is in generation {generation}, and its nodes were told of \
                 {published}"
            ));
        }
        let mut taken = BTreeSet::new();
        match ranks.iter().find(|rank| !taken.insert(**rank)) {
            None => Ok(()),
            Some((role, rank)) => Err(format!(
                "on node {node} two nodes of the {protocol} of job {job} have rank {rank} of the role {role}"
            )),
        }
    }

    /// How often a cluster was looked at.
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(generation: u64, ranks: &[(&'static str, u32)]) -> ClusterSeen {
        let ranks = ranks.to_vec();
        ClusterSeen { protocol: "cluster", job: JobId(7), generation, published: 2, ranks }
    }

    #[test]
    fn a_generation_that_falls_is_noticed_unless_the_node_was_started_again() {
        let mut rule = ClusterGenerations::default();
        let mut see = |life, generation| rule.see(NodeId(1), Life(life), &seen(generation, &[]));
        assert_eq!((see(1, 5), see(1, 5), see(2, 3), see(2, 4)), (Ok(()), Ok(()), Ok(()), Ok(())));
        let broken = see(2, 3).unwrap_err();
        assert_eq!(broken, "on node 1 the cluster of job 7 was in generation 4, and is in 3");
        let early = see(3, 1).unwrap_err();
        assert!(early.ends_with("is in generation 1, and its nodes were told of 2"), "{early}");
        assert_eq!(rule.looks(), 6);
    }

    #[test]
    fn a_rank_for_two_nodes_of_a_role_is_noticed() {
        let mut rule = ClusterGenerations::default();
        let apart = seen(2, &[("worker", 0), ("server", 0), ("server", 1)]);
        assert_eq!(rule.see(NodeId(1), Life(1), &apart), Ok(()));
        let twice = seen(2, &[("worker", 0), ("server", 1), ("server", 1)]);
        let broken = rule.see(NodeId(1), Life(1), &twice).unwrap_err();
        assert!(broken.ends_with("have rank 1 of the role server"), "{broken}");
    }
}
