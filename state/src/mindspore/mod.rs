//! MindSpore's two schedulers: the dynamic cluster of 1.8 and later ([`topology`]), and that of the parameter server and
//! of federated learning in 1.2 to 2.2 ([`cluster`]).
//!
//! A job holds at most one of each. How many workers and servers there are is the job's own specification
//! ([`Expected`]). A node is told from others by its id, a text that its environment gives it, and by its [`Member`]: the
//! log index at which it came, which no other node ever has.
//!
//! What upstream decides by a clock, the order of a hash table or the order in which connections are served is decided
//! by the log here; docs/decisions/046 lists where that differs from upstream, and why.

pub mod cluster;
pub mod limits;
pub mod topology;

mod apply;
mod expected;
mod ranks;
mod refusal;

use serde::{Deserialize, Serialize};

use crate::command::Scope;
use crate::memory::all_inside;

pub use expected::{Expected, Role};
pub use refusal::Refusal;

/// A node of a cluster: the log index at which it registered first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Member(pub u64);

all_inside!(Member);

/// What changes a job's MindSpore schedulers. Needs feature level 9, and what is planned 11.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// A node of a dynamic cluster asks.
    Topology { scope: Scope, request: topology::Request },
    /// A node of a parameter server's cluster asks, or an operator.
    Cluster { scope: Scope, request: cluster::Request },
    /// What the leader found out.
    Lead { scope: Scope, decision: Decision },
    /// An operator asks the cluster of this generation, and no other one. 0: that of which no node has come.
    Planned { scope: Scope, generation: u64, request: cluster::Request },
}

impl Command {
    /// The job that it is about.
    #[must_use]
    pub fn scope(&self) -> Scope {
        match self {
            Self::Topology { scope, .. }
            | Self::Cluster { scope, .. }
            | Self::Lead { scope, .. }
            | Self::Planned { scope, .. } => *scope,
        }
    }
}

/// What the leader found out. Apply looks again: what does not hold any more changes nothing and is no refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// Nodes of the dynamic cluster were silent for too long. They stay registered.
    TopologySilent { nodes: Vec<Member> },
    /// Such nodes were heard again.
    TopologyHeard { nodes: Vec<Member> },
    /// Not all nodes came in time; the deadline is [`topology::View::deadline_ms`].
    TopologyTimedOut { generation: u64 },
    /// Nodes of the cluster were silent for too long. Their places wait for them, or for others, for a while.
    ClusterSilent { nodes: Vec<(Member, cluster::Incarnation)> },
    /// Such nodes were heard again.
    ClusterHeard { nodes: Vec<(Member, cluster::Incarnation)> },
    /// That while is over: `State::cluster_due`.
    ClusterGaveUp { nodes: Vec<(Member, cluster::Incarnation)> },
    /// Not all nodes came in time: `State::cluster_due`.
    ClusterTimedOut { generation: u64 },
    /// Servers that have not answered a switch by now are not waited for.
    ClusterSwitchEnded { switch: u64 },
    /// Nodes have answered what they were told.
    Echoed { echoes: Vec<cluster::Echo> },
}

/// What a command is answered that was not refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Answer {
    /// The node belongs to the dynamic cluster. `nodes`: how many are expected.
    Registered {
        rank: u32,
        nodes: u32,
    },
    /// The node has left.
    Unregistered,
    /// `existed`: whether there was such an entry.
    Deleted {
        existed: bool,
    },
    Written,
    /// The node belongs to the cluster.
    Joined {
        member: Member,
        incarnation: cluster::Incarnation,
        rank: u32,
        generation: u64,
    },
    /// The event is told to all, as the one of that number.
    Accepted {
        sequence: u64,
    },
    /// The cluster scales.
    Scaling {
        generation: u64,
    },
    /// The servers are told.
    Switching {
        switch: u64,
    },
    /// There is nothing to tell.
    Noted,
}
