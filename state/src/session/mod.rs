//! Sessions: the memory that makes a repeated command take effect once.
//!
//! From feature level 5 on a session belongs to somebody, and nobody can name it who was not told its id: see [`Owner`]. Those
//! of earlier levels, whose ids are log indexes, are not kept by being used then, so the last of them is closed as long after
//! the level was raised as a client's session may be idle.

mod fits;
mod owned;
mod owners;
pub(crate) mod table;
mod weight;

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::ids::{NodeId, SessionId, TimeMs};

/// Whose a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Owner {
    /// A node's own: it stands behind the calls of all clients that have none.
    Node(NodeId),
    /// A client's, with the address that it opened it from; `None` for one on the machine of its node.
    Client(Option<IpAddr>),
}

/// What changes sessions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Command {
    /// Answers [`crate::Answer::Session`]. Refused from feature level 5 on, which has [`Self::OpenFor`].
    Open,
    /// Forgets the session and its replies.
    Close { session: SessionId },
    /// Proposed by the leader: closes sessions that were last used before this log time.
    ExpireIdle { before_ms: TimeMs },
    /// Opens the session of this id, which is random bits of the node that proposes it: the state machine has no
    /// randomness. Answers [`crate::Answer::Session`], or [`crate::Fault::SessionExpired`] if the id is taken. Needs
    /// feature level 5.
    OpenFor { id: SessionId, owner: Owner },
    /// Proposed by the leader: closes sessions of clients, and those of nodes and of calls that wait, that were last used
    /// before these log times. Needs feature level 5.
    ExpireOwned { clients_before_ms: TimeMs, nodes_before_ms: TimeMs },
}
