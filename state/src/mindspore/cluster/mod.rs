//! The cluster of a parameter server or of federated learning: MindSpore 1.2 to 2.2.
//!
//! Nodes register, learn their ranks and each other's addresses, and are told what happens by calls to their own
//! addresses. What each is still to be told is derived from the state ([`Order`], `State::cluster_orders`) and is marked
//! in the log when it was ([`Echo`]), so whoever leads next goes on where the last one stopped.
//!
//! # Rules
//!
//! * A node has one rank among those of its role, and no two have the same. It is the lowest free one, or the one that
//!   the node offers if nobody has it. A known id keeps its rank, whatever its address is now. A node that was given up
//!   for dead is replaced by the next unknown one of its role.
//! * The generation rises whenever the members, their addresses, their ranks or their number change, and never falls.
//!   Within one, a node has one rank.
//! * When as many nodes live as are expected, all are told of each other ([`Order::Metadata`]); that is the only way in
//!   which a node becomes one of those that events reach.
//! * Of a node that dies nothing is said for a while, in which another process may take its place: what upstream's nodes
//!   are told when one is lost ([`ClusterState::NodeTimeout`]) ends them.
//! * A scaling state lasts until every node has said that it is done. The ranks of those who stay are decided when it
//!   begins. Scaling out that does not come about is taken back; scaling in cannot be.
//! * Events are numbered, kept, and told to each node in their order, until it has them.
//! * When all who live and stay have finished, all are told so, and when they are, the job can be used again.

mod apply;
mod done;
mod echo;
mod events;
mod lives;
mod node;
mod orders;
mod part;
mod plan;
pub(crate) mod record;
mod register;
mod report;
mod scale;
mod settle;
mod switch;
mod view;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::mindspore::{Member, Role};

pub(crate) use part::{Head, Part};
pub use plan::{Change, Plan, PlannedNode};
pub use report::{EventView, Events, NodeLife, NodeReport, Report, ScalingView};
pub use view::{NodeView, Recipient, View};

/// One process of a node: the log index of the registration that brought its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Incarnation(pub u64);

/// What a node, or an operator, asks. `incarnation` is the process that a connection belongs to; `None`: not known, as of a
/// connection that was made anew without a registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// To belong to the cluster, or to go on belonging to it: [`crate::mindspore::Answer::Joined`].
    Register {
        node: String,
        role: Role,
        /// Where the node listens.
        ip: String,
        port: u32,
        /// The rank that it says it has.
        offered_rank: Option<u32>,
        /// It says that it was there before (2.0): while the cluster scales out, that is taken back.
        recovering: bool,
    },
    /// The node has nothing left to do.
    Finish { node: String, incarnation: Option<Incarnation> },
    /// The node has done what scaling asks of it.
    Done { node: String, incarnation: Option<Incarnation>, scaling: Scaling },
    /// The node tells all: [`crate::mindspore::Answer::Accepted`].
    Event { node: String, incarnation: Option<Incarnation>, event: u32 },
    /// An operator wants so many more: [`crate::mindspore::Answer::Scaling`].
    ScaleOut { workers: u32, servers: u32 },
    /// An operator wants these to leave: [`crate::mindspore::Answer::Scaling`].
    ScaleIn { nodes: Vec<String> },
    /// An operator takes back that the cluster scales out.
    Abort,
    /// An operator tells all servers something: [`crate::mindspore::Answer::Switching`].
    Switch { switch: Switch, body: Bytes },
}

/// In which direction a cluster scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scaling {
    Out,
    In,
}

impl Scaling {
    /// In words.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Out => "out",
            Self::In => "in",
        }
    }
}

/// What all servers are told at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Switch {
    /// Begin another instance of federated learning; its parameters are the body.
    NewInstance,
    EnableFls,
    DisableFls,
}

/// What nodes are told with their heartbeats. The order is that of the wire's numbers, without 9, which nobody is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ClusterState {
    Starting,
    Ready,
    Exit,
    NodeTimeout,
    ScaleOut,
    ScaleIn,
    NewInstance,
    EnableFls,
    DisableFls,
    /// Scaling out is taken back. Nodes before 1.8 do not know it: they are told [`Self::ScaleOut`], with the numbers of
    /// before.
    ScaleOutRollback,
}

impl ClusterState {
    /// In words.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Exit => "exit",
            Self::NodeTimeout => "node-timeout",
            Self::ScaleOut => "scale-out",
            Self::ScaleIn => "scale-in",
            Self::NewInstance => "new-instance",
            Self::EnableFls => "enable-fls",
            Self::DisableFls => "disable-fls",
            Self::ScaleOutRollback => "scale-out-rollback",
        }
    }
}

/// Something that a node is to be told by a call to its address. All but [`Self::Scale`] may be told twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Order {
    /// That the cluster scales, and how many nodes it will have. `leaving`: this one will not be among them.
    Scale { generation: u64, scaling: Scaling, workers: u32, servers: u32, leaving: bool },
    /// Who belongs to the cluster. A node that leaves does not answer it: it is told as soon as it was sent.
    Metadata { generation: u64, state: ClusterState },
    /// That all are done.
    ScaleDone { scaling: Scaling },
    /// `switch` numbers the request; what it says is `State::cluster_switch`.
    Switch { switch: u64 },
    /// The events of one node have ascending numbers, without a gap.
    Event { sequence: u64, event: u32 },
    /// That all have finished.
    Finish,
}

impl Order {
    /// In words.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Scale { .. } => "scale",
            Self::Metadata { .. } => "metadata",
            Self::ScaleDone { .. } => "scale-done",
            Self::Switch { .. } => "switch",
            Self::Event { .. } => "event",
            Self::Finish => "finish",
        }
    }
}

/// A node has answered an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Echo {
    pub member: Member,
    pub incarnation: Incarnation,
    pub order: Order,
}
