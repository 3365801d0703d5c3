//! What scaling would do, before anybody asks for it: the same code on a copy of the cluster.

use crate::command::Scope;
use crate::fault::Fault;
use crate::ids::{NodeName, TimeMs};
use crate::limits::within;
use crate::mindspore::cluster::ClusterState;
use crate::mindspore::cluster::record::Cluster;
use crate::mindspore::limits::NODES_MAX;
use crate::mindspore::{Expected, Member, Refusal, Role};
use crate::state::State;

/// Another size of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// So many servers more.
    Add { servers: u32 },
    /// So many servers, whatever there are now; those of the highest ranks leave.
    Resize { servers: u32 },
    /// These servers leave.
    Leave { nodes: Vec<String> },
}

/// What a change would do. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Of the cluster that it was made for: in another one it may be something else.
    pub generation: u64,
    pub before: Expected,
    pub after: Expected,
    /// How many servers would be added.
    pub added: u32,
    /// All nodes, by role and rank before.
    pub nodes: Vec<PlannedNode>,
    /// The ranks of the servers that would have to come.
    pub free_ranks: Vec<u32>,
}

/// A node, and what would become of its rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedNode {
    pub node: NodeName,
    pub role: Role,
    /// `None`: it leaves already.
    pub before: Option<u32>,
    /// `None`: it would leave.
    pub after: Option<u32>,
}

impl Plan {
    /// The servers that would be told to leave.
    #[must_use]
    pub fn leaving(&self) -> Vec<&NodeName> {
        let leaving = self.nodes.iter().filter(|node| node.before.is_some() && node.after.is_none());
        leaving.map(|node| &node.node).collect()
    }
}

impl State {
    /// What a change would do now. It is refused as the change itself would be.
    ///
    /// # Errors
    /// The scope's faults, and those of scaling.
    pub fn cluster_plan(&self, scope: Scope, change: &Change) -> Result<Plan, Fault> {
        let job = self.jobs.scoped(scope)?;
        let Some(cluster) = job.domains.cluster.as_deref() else {
            return Err(Refusal::NotReady { state: ClusterState::Starting, nodes: 0 }.into());
        };
        cluster.check_ready()?;
        cluster.planned(change)
    }
}

impl Cluster {
    fn planned(&self, change: &Change) -> Result<Plan, Fault> {
        let mut after = self.clone();
        let added = match change {
            Change::Add { servers } => *servers,
            Change::Resize { servers } => servers.saturating_sub(self.head.expected.servers),
            Change::Leave { .. } => 0,
        };
        // No time runs in a plan.
        let deadline = TimeMs(0);
        match change {
            Change::Leave { nodes } => {
                within("nodes that are to leave", nodes.len() as u64, NODES_MAX)?;
                after.scale_in(nodes, deadline)?;
            }
            Change::Resize { servers } if added == 0 => {
                after.scale_in(&self.servers_from(*servers), deadline)?;
            }
            Change::Add { .. } | Change::Resize { .. } => {
                after.scale_out(0, added, deadline)?;
            }
        }
        let mut nodes: Vec<(Member, PlannedNode)> = self
            .nodes()
            .iter()
            .map(|(member, node)| {
                let after = after.nodes().get(member).and_then(|node| node.rank);
                (*member, PlannedNode { node: node.name.clone(), role: node.role, before: node.rank, after })
            })
            .collect();
        nodes.sort_by_key(|(member, node)| (node.before.is_none(), node.role, node.before, *member));
        let taken = |rank: &u32| after.with_rank(Role::Server, *rank).is_some();
        Ok(Plan {
            generation: self.head.generation,
            before: self.head.expected,
            after: after.head.expected,
            added,
            nodes: nodes.into_iter().map(|(_, node)| node).collect(),
            free_ranks: (0..after.head.expected.servers).filter(|rank| !taken(rank)).collect(),
        })
    }

    /// The servers of this rank and of higher ones.
    fn servers_from(&self, rank: u32) -> Vec<String> {
        let servers = self.ranks().of(Role::Server).filter(|(had, _)| *had >= rank);
        servers.filter_map(|(_, member)| Some(self.nodes().get(&member)?.name.to_string())).collect()
    }
}
