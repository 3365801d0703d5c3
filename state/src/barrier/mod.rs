//! Barriers: instances with counters, membership fixed by the first instance, stored results.

mod apply;
mod arrive;
mod cancel;
mod expire;
mod finish;
pub(crate) mod instance;
mod look;
pub(crate) mod members;
pub(crate) mod report;
pub(crate) mod table;

use serde::{Deserialize, Serialize};

use crate::command::Scope;
use crate::ids::{BarrierCounter, BarrierName, JobId, TaskId};

pub(crate) use arrive::{Arrival, Arrived};
pub use report::{Failure, Gathering, Party, Report, What};

/// The barrier that every registration passes.
pub const REGISTER_BARRIER: &str = "[Init]Wait_for_all_tasks_to_register";

/// What changes barriers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Waits: [`crate::Ticket::Barrier`]; or the stored result at once.
    Arrive {
        scope: Scope,
        barrier: String,
        counter: BarrierCounter,
        /// As the client sent it, in milliseconds; zero and below expire at once.
        timeout_ms: i64,
        /// Empty: every task of the job.
        tasks: Vec<TaskId>,
        task: TaskId,
    },
    Cancel {
        scope: Scope,
        barrier: String,
        counter: BarrierCounter,
        task: TaskId,
    },
    /// Proposed by the leader's timers; does nothing unless that instance is still open.
    Expire {
        job: JobId,
        barrier: BarrierName,
        counter: BarrierCounter,
    },
}

impl Command {
    pub(crate) fn scope(&self) -> Scope {
        match self {
            Self::Arrive { scope, .. } | Self::Cancel { scope, .. } => *scope,
            Self::Expire { job, .. } => Scope { job: *job, service: None },
        }
    }
}
