//! Why a MindSpore scheduler refused.

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::ids::NodeName;
use crate::mindspore::Role;

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
                "the cluster has {places} places for nodes that are a {}, and all of them are taken",
                role.word()
            ),
            Self::NotInitialized => "not all nodes of the cluster have registered".to_owned(),
        }
    }
}
