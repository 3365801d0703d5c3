//! One running node: everything of this crate put together, started and stopped. What it does for those who call it is
//! [`Handle`](crate::Handle).
//!
//! | module | what |
//! |---|---|
//! | `start` | from options to a node that runs |
//! | `join` | how it takes its place among the others |
//! | `tasks` | its port, and the tasks that look after its engine |
//! | `config`, `storage` | openraft's options from ours, and opening what is on disk |
//! | `world` | what a node stands on: network, storage and clock, the real ones or a simulation's |
//! | `port` | the peer port, and what is looked at before anything is answered |
//! | `trim` | how much of its log is kept |
//! | `status`, `measures` | what it tells of itself |
//! | `stop` | its end |

mod config;
mod join;
pub(crate) mod measures;
mod port;
#[cfg(test)]
mod replaced_test;
mod start;
pub(crate) mod status;
mod stop;
pub(crate) mod storage;
mod tasks;
#[cfg(test)]
mod tests;
mod trim;
pub(crate) mod world;

use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::apply::engine::Raft;
use crate::apply::hooks::Hooks;
use crate::apply::state_machine::StateMachine;
use crate::base::failure::Failure;
use crate::base::options::Options;
use crate::care::divergence::Comparer;
use crate::care::level::LevelHandler;
use crate::care::membership::Members;
use crate::care::rejoin::{Acknowledged, Forming};
use crate::care::space::{Admission, Gauge, Reports};
use crate::disk::Work;
use crate::disk::journal::Space;
use crate::lead::fitness::Fitness;
use crate::lead::forward::Forwarder;
use crate::lead::hand_over::HandOver;
use crate::lead::leader_link::LeaderLink;
use crate::lead::leader_signs::LeaderSigns;
use crate::lead::leadership::LeadershipWatch;
use crate::lead::read_index::ReadRounds;
use crate::lead::submit::Submitter;
use crate::lead::suspicion::Suspicion;
use crate::log::LogStore;
use crate::offline::backup::Saves;
use crate::peers::gate::Gate;
use crate::peers::send_gate::SendGate;

/// A running node.
pub(crate) struct Node {
    pub(crate) options: Options,
    pub(crate) hooks: Hooks,
    raft: Raft,
    pub(crate) machine: StateMachine,
    log: LogStore,
    pub(crate) failure: Failure,
    pub(crate) leadership: LeadershipWatch,
    fitness: Fitness,
    send_gate: SendGate,
    heard: LeaderSigns,
    suspicion: Suspicion,
    space: Space,
    gauge: Gauge,
    pub(crate) admission: Admission,
    reports: Reports,
    pub(crate) submitter: Submitter,
    pub(crate) forwarder: Forwarder,
    pub(crate) link: LeaderLink,
    comparer: Comparer,
    pub(crate) hand_over: HandOver,
    pub(crate) members: Members,
    pub(crate) level_handler: LevelHandler,
    /// Snapshots that clients are being sent.
    pub(crate) saves: Saves,
    /// What to tell the operator once this node was removed.
    pub(crate) removed: watch::Sender<Option<String>>,
    pub(crate) work: Work,
    /// Which messages of peers are let in.
    gate: Gate,
    /// Whom a first start waits for.
    forming: Forming,
    /// What the others have acknowledged to this node.
    acknowledged: Acknowledged,
    /// Reads while this node leads.
    pub(crate) own_rounds: ReadRounds,
    /// Reads while another node leads.
    pub(crate) remote_rounds: ReadRounds,
    pub(crate) stopping: AtomicBool,
    pub(crate) stop: CancellationToken,
    server: Mutex<Option<JoinHandle<()>>>,
}

/// What tests break, or look at.
#[cfg(test)]
impl Node {
    pub(crate) fn machine(&self) -> &StateMachine {
        &self.machine
    }

    pub(crate) fn submitter(&self) -> &Submitter {
        &self.submitter
    }

    pub(crate) fn raft(&self) -> &Raft {
        &self.raft
    }

    /// Has this node do nothing about members when it leads.
    #[cfg(test)]
    pub(crate) fn idle_members(&self) {
        self.members.idle.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    pub(crate) fn acknowledged(&self) -> &Acknowledged {
        &self.acknowledged
    }
}
