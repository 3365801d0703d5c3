//! What calls of the runtime wait for, and reads.

use serde::{Deserialize, Serialize};

use crate::command::{Answer, Reply, Scope};
use crate::fault::Fault;
use crate::ids::{CallId, ClientId, DurationMs, JobId, TaskId};
use crate::job::record::Job;
use crate::runtime::record::{Barrier, Phase, Runtime};
use crate::runtime::{BarrierId, Call, Refusal, keys};
use crate::state::State;
use crate::wait::Ticket;

/// The waiting part of [`crate::Ticket::Runtime`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Wait {
    /// For all tasks to connect.
    Connect { task: TaskId, client: ClientId, call: CallId },
    /// For all topologies.
    Enumerate,
    /// For all tasks to arrive.
    Barrier { barrier: BarrierId },
    /// For all tasks to leave.
    Shutdown,
}

/// How long those calls wait that do not say so themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    pub enumerate: DurationMs,
    pub shutdown: DurationMs,
}

impl State {
    /// The job's patience, if there is such a job.
    #[must_use]
    pub fn runtime_patience(&self, job: JobId) -> Option<Patience> {
        let spec = &self.jobs.get(job)?.spec;
        Some(Patience { enumerate: spec.register_timeout_ms, shutdown: spec.shutdown_timeout_ms })
    }

    /// A key of the runtime: [`Answer::Value`], or [`Answer::Waiting`] when it is not there yet.
    ///
    /// # Errors
    /// The scope's faults, or that the runtime does not run.
    pub fn runtime_value(&self, scope: Scope, key: &[u8]) -> Reply {
        let job = self.jobs.scoped(scope)?;
        job.check_running(Call::Get)?;
        let asked = keys::stored(key);
        Ok(job.value(&asked).unwrap_or(Answer::Waiting(Ticket::Key { scope, asked })))
    }
}

impl Job {
    /// How a wait ended, or `None` while it goes on.
    pub(crate) fn runtime_outcome(&self, wait: &Wait) -> Option<Reply> {
        let Some(runtime) = &self.runtime else {
            // A ticket is only given out by a runtime, and none is forgotten.
            return Some(Err(Fault::JobUnknown { name: None }));
        };
        let tasks = self.spec.tasks;
        match wait {
            Wait::Connect { task, client, call } => {
                let member = runtime.member(*task)?;
                if member.client != *client || *call < member.since {
                    return Some(Err(Refusal::Replaced { task: *task }.into()));
                }
                let connected = runtime.phase != Phase::Initializing;
                connected.then_some(Ok(Answer::Registered { service: self.service }))
            }
            Wait::Enumerate if runtime.enumerated() == tasks => {
                let topologies = runtime.members().values().filter_map(|member| member.topology.clone());
                Some(Ok(Answer::Devices { service: self.service, devices: topologies.collect() }))
            }
            Wait::Barrier { barrier } if matches!(runtime.barrier(barrier), Some(Barrier::Passed)) => {
                Some(Ok(Answer::Done))
            }
            Wait::Shutdown if runtime.shutdowns == tasks => Some(Ok(Answer::Done)),
            Wait::Enumerate | Wait::Barrier { .. } | Wait::Shutdown => runtime.lost().map(Err),
        }
    }
}

impl Runtime {
    fn lost(&self) -> Option<Fault> {
        match self.phase {
            Phase::Closed { lost: Some(task) } => Some(Refusal::Lost { task }.into()),
            Phase::Initializing | Phase::Running | Phase::Closed { lost: None } => None,
        }
    }
}
