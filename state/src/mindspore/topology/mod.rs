//! The dynamic cluster of MindSpore 1.8 and later: nodes register, learn their ranks, and exchange metadata.
//!
//! A cluster goes through generations. One begins with a registration when none is under way: at first, and when the one
//! before finished, failed, or has only silent nodes. It forgets the nodes and the metadata of the one before, so a job can
//! be used again. Within a generation a node keeps its place, whether it is silent or has left.
//!
//! A rank may change once, when the last node registers (`rank`); until then no entry tells it, so nobody reads a
//! rank that changes. The entry `<role><node id>` is derived from the node, and so is which ports it may use.

mod complete;
mod metadata;
mod part;
mod rank;
pub(crate) mod record;
mod register;
mod silent;
mod view;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::mindspore;

pub(crate) use part::{Head, Part};
pub use view::{NodeView, View};

/// The role of a node, as it is written in its environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// `MS_WORKER`.
    Worker,
    /// `MS_SERVER`.
    Server,
    /// `MS_PSERVER`, which takes places of servers.
    ParameterServer,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Worker, Self::Server, Self::ParameterServer];

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Worker => "MS_WORKER",
            Self::Server => "MS_SERVER",
            Self::ParameterServer => "MS_PSERVER",
        }
    }

    /// The role that is written so.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Whose places it takes, and among whom its rank is counted.
    #[must_use]
    pub fn base(self) -> mindspore::Role {
        match self {
            Self::Worker => mindspore::Role::Worker,
            Self::Server | Self::ParameterServer => mindspore::Role::Server,
        }
    }
}

/// Which numbers a node's release gives to messages: from 2.10 on those behind `kGetHostNames` are one higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Dialect {
    /// 1.8 to 2.2.
    V2_0,
    /// 2.10.
    V2_10,
}

/// What a node asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// To belong to the cluster, or to go on belonging to it: [`mindspore::Answer::Registered`].
    Register {
        node: String,
        host_name: String,
        /// Empty: the client is older than 2.2, and goes by the rank that it is answered.
        host_ip: String,
        role: Role,
        /// The rank that something else has given to it.
        wanted_rank: Option<u32>,
        dialect: Dialect,
    },
    /// To leave. Asked again, it has left: [`mindspore::Answer::Unregistered`].
    Unregister { node: String },
    /// To keep an entry. An empty value takes it away: clients cannot tell the two apart.
    Write { name: String, value: Bytes },
    /// To forget an entry: [`mindspore::Answer::Deleted`].
    Delete { name: String },
}

/// How far a cluster is. The order is that of the wire's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TopoState {
    /// Not all nodes have registered.
    Initializing,
    /// All have, and not all have left.
    Initialized,
    /// Not all nodes registered in time.
    Failed,
    /// All have left.
    Finished,
}

impl TopoState {
    /// In words.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Initializing => "initializing",
            Self::Initialized => "initialized",
            Self::Failed => "failed",
            Self::Finished => "finished",
        }
    }
}

/// Ports that a node may use on its host, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PortRange {
    pub first: u32,
    pub last: u32,
}
