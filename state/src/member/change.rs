//! What an operator wants of the members, and how it ended.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{ChangeId, NodeId, TimeMs};

/// One change of the members, as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Change {
    /// A node with a new id, reached by its peers at `HOST:PORT`, receives the log and does not vote.
    Add { peer: String },
    /// A learner votes, once it has caught up.
    Promote { node: NodeId },
    /// A voter becomes a learner.
    Demote { node: NodeId },
    /// A node leaves for good.
    Remove { node: NodeId },
    /// A node's peers reach it at another `HOST:PORT` from now on.
    Move { node: NodeId, peer: String },
    /// The node at `HOST:PORT`, with a new id unless it was added already, takes the place of `old` in one
    /// change of the voters, once it has caught up. There are never more voters than before.
    Replace { old: NodeId, peer: String },
}

impl Change {
    /// The peer address that it names.
    #[must_use]
    pub fn peer(&self) -> Option<&str> {
        match self {
            Self::Add { peer } | Self::Move { peer, .. } | Self::Replace { peer, .. } => Some(peer),
            Self::Promote { .. } | Self::Demote { .. } | Self::Remove { .. } => None,
        }
    }

    /// The member that it names.
    #[must_use]
    pub fn member(&self) -> Option<NodeId> {
        match self {
            Self::Add { .. } => None,
            Self::Promote { node }
            | Self::Demote { node }
            | Self::Remove { node }
            | Self::Move { node, .. } => Some(*node),
            Self::Replace { old, .. } => Some(*old),
        }
    }
}

/// As people read it after "change in progress: ".
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add { peer } => write!(f, "add {peer}"),
            Self::Promote { node } => write!(f, "promote {node}"),
            Self::Demote { node } => write!(f, "demote {node}"),
            Self::Remove { node } => write!(f, "remove {node}"),
            Self::Move { node, peer } => write!(f, "move {node} to {peer}"),
            Self::Replace { old, peer } => write!(f, "replace {old} by {peer}"),
        }
    }
}

/// The change under way. Whoever leads brings it to its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Open {
    pub id: ChangeId,
    pub change: Change,
    /// The node that it is about: of a replacement, the new one.
    pub node: NodeId,
    /// Who wanted it, for people.
    pub by: String,
    /// The leader's clock when it began.
    pub since: TimeMs,
    /// The operator gave up on it.
    pub cancelled: bool,
}

impl Open {
    /// Who is named as the one that wants a node added that asked for it itself.
    pub(super) const JOINING: &str = "the node itself";

    /// Whether this is the arrival of a node that asked for it itself. It is short, and no operator's.
    #[must_use]
    pub fn is_arrival(&self) -> bool {
        self.by == Self::JOINING && matches!(self.change, Change::Add { .. })
    }
}

/// A change that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Finished {
    pub open: Open,
    pub ending: Ending,
    /// The leader's clock when it ended.
    pub at: TimeMs,
}

/// How a change ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ending {
    Done,
    /// By the operator. What had been done by then stays.
    Cancelled,
    /// It could not be done, for this reason.
    Failed(String),
}
