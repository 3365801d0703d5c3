//! Why a MindSpore scheduler refused.

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::ids::NodeName;
use crate::mindspore::Role;
use crate::mindspore::cluster::ClusterState;

/// A refusal, as [`crate::Fault::Mindspore`]. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Refusal {
    /// No such node belongs to the cluster.
    NodeUnknown { node: NodeName },
    /// The node has left, and its cluster is not over yet.
    NodeLeft { node: NodeName },
    /// A node of that id belongs to the cluster, and has this role.
    OtherRole { node: NodeName, role: Role },
    /// All places of the role are taken.
    Full { role: Role, places: u32 },
    /// Not all nodes have registered yet, or they did not in time.
    NotInitialized,
    /// Another process of the node has registered since.
    Replaced { node: NodeName },
    /// Not all nodes have been there together yet, so nobody would be told.
    NotFormed,
    /// All nodes have finished, and some are still to be told so.
    Ending,
    /// The cluster does something else, or so many of its nodes do not live or do not know of the others.
    NotReady { state: ClusterState, nodes: u32 },
    /// Workers were to be added.
    WorkersFixed,
    /// No server was to be added, or none was to leave.
    NothingToScale,
    /// A worker was to leave.
    NoServer { node: NodeName },
    /// The server of rank 0 was to leave.
    FirstServer { node: NodeName },
    /// The cluster does not scale out, or all nodes are there already.
    NotAbortable,
    /// It was meant for the cluster of another generation. From feature level 11 on.
    Outdated { planned: u64, current: u64 },
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Mindspore(refusal)
    }
}

impl Refusal {
    /// In plain words: see [`Fault::text`].
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::NodeUnknown { node } => {
                format!("no node `{node}` belongs to the cluster; register it first")
            }
            Self::NodeLeft { node } => {
                format!(
                    "node `{node}` has left its cluster, which takes new nodes when all others have left, too"
                )
            }
            Self::OtherRole { node, role } => {
                format!("node `{node}` belongs to the cluster as a {}; use another id", role.word())
            }
            Self::Full { role, places } => format!(
                "the cluster has {places} places for the role {}, and all of them are taken",
                role.word()
            ),
            Self::NotInitialized => "not all nodes of the cluster have registered".to_owned(),
            Self::Replaced { node } => format!("another process of node `{node}` has registered since"),
            Self::NotFormed => "the nodes of the cluster have not been there together yet".to_owned(),
            Self::Ending => {
                "all nodes of the cluster have finished, and some are not told yet; try again".to_owned()
            }
            Self::NotReady { state, nodes: 0 } => {
                format!("the cluster is not ready: its state is {}", state.word())
            }
            Self::NotReady { state, nodes } => format!(
                "the cluster is not ready: its state is {}, and {nodes} of its nodes do not live or do not know of the \
                 others yet",
                state.word()
            ),
            Self::WorkersFixed => "a cluster cannot be given more workers; add servers".to_owned(),
            Self::NothingToScale => {
                "no server is named or counted; say which are to leave, or how many to add".to_owned()
            }
            Self::NoServer { node } => format!("node `{node}` is a worker, and only servers can leave"),
            Self::FirstServer { node } => {
                format!("node `{node}` is the server of rank 0, which cannot leave")
            }
            Self::NotAbortable => {
                "there is nothing to take back: the cluster does not scale out, or all of its nodes are there"
                    .to_owned()
            }
            Self::Outdated { planned, current } => {
                format!("the cluster is of generation {current} by now, and not {planned}; look at it again")
            }
        }
    }
}
