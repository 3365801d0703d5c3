//! Waiting is not state: a waiting call holds a [`Ticket`] and asks the state again whenever the
//! ticket's [`Topic`] is touched. The arrival is replicated, so any node can be asked.

use serde::{Deserialize, Serialize};

use crate::command::{Effect, Scope};
use crate::ids::{BarrierCounter, BarrierName, CallId, Incarnation, JobId, Key, TaskId, TaskVersion};
use crate::runtime;

/// What a call waits for. Resolved by [`crate::State::resolve`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ticket {
    /// A registration that waits for the register barrier.
    Register { job: JobId, task: TaskId, incarnation: Incarnation, call: CallId },
    /// An arrival at a barrier instance.
    Barrier { job: JobId, barrier: BarrierName, counter: BarrierCounter, task: TaskId, call: CallId },
    /// A shutdown that waits for the shutdown barrier.
    Shutdown { job: JobId, barrier: BarrierName, task: TaskId, call: CallId },
    /// A device exchange that waits for all tasks (dialect T).
    Devices { job: JobId, barrier: BarrierName, task: TaskId, call: CallId },
    /// A held poll for errors.
    Poll { job: JobId, task: TaskId, call: CallId },
    /// A member of a group that asks who is alive; `group` is the call that opened the group.
    Alive { job: JobId, group: CallId },
    /// A key that does not exist yet. `asked` is the key as the caller wrote it.
    Key { scope: Scope, asked: String },
    /// A change of task states after `seen`; negative: now.
    Tasks { scope: Scope, seen: TaskVersion },
    /// Something of the job's runtime.
    Runtime { job: JobId, wait: runtime::Wait },
}

/// What a waiter is woken by. Several tickets share a topic; a woken waiter looks again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    Key(JobId, Key),
    Barrier(JobId, BarrierName),
    Tasks(JobId),
    Polls(JobId),
    Alive(JobId),
    /// Whatever changes in one domain of a job.
    Domain(DomainId, JobId),
    Jobs,
    Members,
    Tokens,
}

/// A domain whose waiting calls share one topic for each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DomainId {
    /// The service of JAX clients older than the coordination service.
    Runtime,
    /// The scheduler of tasks and objects.
    Ray,
    /// The schedulers of MindSpore's clusters.
    Mindspore,
    /// Sessions and graphs.
    Mars,
}

impl Ticket {
    /// What to listen to. A waiter must listen before it asks the state, or a change between the
    /// two is lost.
    #[must_use]
    pub fn topic(&self) -> Topic {
        match self {
            Self::Register { job, .. } => {
                Topic::Barrier(*job, BarrierName::from(crate::barrier::REGISTER_BARRIER))
            }
            Self::Barrier { job, barrier, .. }
            | Self::Shutdown { job, barrier, .. }
            | Self::Devices { job, barrier, .. } => Topic::Barrier(*job, barrier.clone()),
            Self::Poll { job, .. } => Topic::Polls(*job),
            Self::Alive { job, .. } => Topic::Alive(*job),
            Self::Key { scope, asked } => Topic::Key(scope.job, crate::kv::normalize(asked)),
            Self::Tasks { scope, .. } => Topic::Tasks(scope.job),
            Self::Runtime { job, .. } => Topic::Domain(DomainId::Runtime, *job),
        }
    }

    /// The job whose deletion ends the wait.
    #[must_use]
    pub fn job(&self) -> JobId {
        match self {
            Self::Register { job, .. }
            | Self::Barrier { job, .. }
            | Self::Shutdown { job, .. }
            | Self::Devices { job, .. }
            | Self::Poll { job, .. }
            | Self::Alive { job, .. }
            | Self::Runtime { job, .. } => *job,
            Self::Key { scope, .. } | Self::Tasks { scope, .. } => scope.job,
        }
    }
}

impl Effect {
    /// Whom to wake.
    #[must_use]
    pub fn topic(&self) -> Option<Topic> {
        match self {
            Self::JobCreated { .. } | Self::JobDeleted { .. } => Some(Topic::Jobs),
            Self::KeyWritten { job, key } => Some(Topic::Key(*job, key.clone())),
            Self::TaskConnected { .. } | Self::BarrierOpened { .. } | Self::ProtocolsMixed { .. } => None,
            Self::TasksChanged { job } => Some(Topic::Tasks(*job)),
            Self::BarrierChanged { job, barrier } => Some(Topic::Barrier(*job, barrier.clone())),
            Self::PollsChanged { job } => Some(Topic::Polls(*job)),
            Self::AliveAnswered { job } => Some(Topic::Alive(*job)),
            Self::MemberChanged => Some(Topic::Members),
            Self::TokensChanged => Some(Topic::Tokens),
            Self::DomainChanged { domain, job } => Some(Topic::Domain(*domain, *job)),
        }
    }
}
