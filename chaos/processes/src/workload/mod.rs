//! Clients that use a cluster while faults hit it, and write down what they were told.
//!
//! Every client reaches the nodes through the network that can be made bad, gives each call a deadline, and
//! goes to another node when one does not answer. What it cannot know it records as unknown. Chance decides for each whether
//! its calls go by streams.
//!
//! | module | what its clients do |
//! |---|---|
//! | `registers` | reads, writes, inserts, compare-and-set and deletes, over `tripod.v1` and dialects N and T |
//! | `lists` | append to a list by compare-and-set of the whole |
//! | `counters` | increments over dialects N and T, repeated with their stamp until answered, and without |
//! | `locks` | take a lock, write what it protects with their token, and are late |
//! | `agent_gang` | beat and meet behind agents, in a run whose nodes are upgraded |
//! | `gangs` | jobs whose tasks register, beat, meet at barriers, exchange keys, leave, fall silent, or come again |
//! | `attackers` | one attack after the other, of all kinds |
//! | `scheduler` | drivers of a scheduler: tasks, chains and trees of tasks, what they put, what comes of it |
//! | `mindspore` | nodes of MindSpore's clusters, of both protocols |
//! | `mars` | sessions of Mars: graphs of chunks, and mutable tensors |
//! | `finals` | what everything holds when all is over |
//! | `dialect` | the dialects that they speak |
//! | `wire` | one attempt at one node, and what its end means |

mod agent_gang;
mod attackers;
mod counters;
mod dialect;
mod finals;
mod gangs;
mod lists;
mod locks;
mod mars;
mod mindspore;
mod registers;
mod scheduler;
mod setting;
mod wire;

pub use agent_gang::{AgentGang, AgentGangSeen, HEARTBEAT_TIMEOUT_S};
pub use finals::read_all;
pub use gangs::{BEAT_TIMEOUT_MS, BEATS_FORGOTTEN_MS};
pub use setting::{Clock, Endpoint, Setting};

use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

/// Clients of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    Registers,
    Lists,
    Counters,
    Locks,
    Gangs,
    /// Needs workers and stores.
    Scheduler,
    /// Workers of MindSpore's dynamic cluster. Needs nodes with ports for them, as the next one does.
    DynamicCluster,
    /// Nodes of MindSpore's parameter server.
    ParameterServer,
    /// Needs stores, and workers that are played.
    Mars,
    /// Means no good.
    Attackers,
}

impl Workload {
    /// Those that need nothing but nodes.
    pub const USUAL: [Self; 5] = [Self::Registers, Self::Lists, Self::Counters, Self::Locks, Self::Gangs];

    /// The same, with those that mean no good.
    pub const WITH_ATTACKERS: [Self; 6] =
        [Self::Registers, Self::Lists, Self::Counters, Self::Locks, Self::Gangs, Self::Attackers];

    /// Whether it needs nodes that have ports for those of MindSpore.
    #[must_use]
    pub fn is_of_mindspore(self) -> bool {
        matches!(self, Self::DynamicCluster | Self::ParameterServer)
    }

    /// Starts its clients. Each ends soon after it is told to stop.
    pub fn start(self, setting: &Setting, clients: &mut JoinSet<()>) {
        match self {
            Self::Registers => registers::start(setting, clients),
            Self::Lists => lists::start(setting, clients),
            Self::Counters => counters::start(setting, clients),
            Self::Locks => locks::start(setting, clients),
            Self::Gangs => gangs::start(setting, clients),
            Self::Scheduler => scheduler::start(setting, clients),
            Self::DynamicCluster => mindspore::start_dynamic(setting, clients),
            Self::ParameterServer => mindspore::start_server(setting, clients),
            Self::Mars => mars::start(setting, clients),
            Self::Attackers => attackers::start(setting, clients),
        }
    }
}
