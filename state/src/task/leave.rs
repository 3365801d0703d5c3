//! Shutdown and reset: a task leaves its job.

use std::sync::Arc;

use crate::barrier::instance::Verdict;
use crate::barrier::members::Members;
use crate::barrier::{Arrival, Arrived};
use crate::command::{Answer, Reply};
use crate::fault::{Asked, Fault, Leaving};
use crate::ids::{BarrierCounter, BarrierName, DurationMs, TaskId};
use crate::job::turn::Turn;
use crate::task::Phase;
use crate::task::record::Life;
use crate::wait::Ticket;

impl Turn<'_> {
    pub(crate) fn shutdown(&mut self, task: TaskId, retried: bool) -> Reply {
        self.known(task, Asked::Disconnect)?;
        if retried && self.job.tasks.get(task).left() {
            return Ok(Answer::Done);
        }
        let spec = &self.job.spec;
        let alone = !spec.shutdown_barrier || spec.shutdown_timeout_ms == DurationMs(0);
        if alone || self.job.recoverable(task) {
            return self.disconnect(task).map(|()| Answer::Done);
        }
        let name = self.job.shutdown_barrier();
        let timeout = spec.shutdown_timeout_ms;
        let tasks = self.shutdown_tasks(&name);
        match self.arrive(Arrival {
            name: name.clone(),
            counter: BarrierCounter(0),
            timeout,
            tasks: &tasks,
            task,
        }) {
            Arrived::Waiting(_) => Ok(Answer::Waiting(Ticket::Shutdown {
                job: self.job.id,
                barrier: name,
                task,
                call: self.call(),
            })),
            Arrived::Over(_, verdict) => shutdown_reply(&verdict),
        }
    }

    /// Disconnects a task, whatever the others do.
    pub(crate) fn disconnect(&mut self, task: TaskId) -> Result<(), Fault> {
        self.known(task, Asked::Disconnect)?;
        if self.job.tasks.get(task).phase() == Phase::Disconnected {
            return Err(Fault::AlreadyDisconnected { task });
        }
        let grace_until = Some(self.context.now_ms.plus(self.job.spec.heartbeat_timeout_ms));
        self.set_life(task, Life::Disconnected { grace_until });
        self.tell_left(task);
        self.leave_barriers(task, &Leaving::Disconnected);
        self.refresh_alive();
        self.end_poll(task);
        self.tasks_changed();
        Ok(())
    }

    /// Whom the shutdown barrier is for: all but those that come and go as they like. Empty stands
    /// for everybody, as in a barrier call.
    fn shutdown_tasks(&self, name: &BarrierName) -> Vec<TaskId> {
        match self.job.barriers.get(name).and_then(|barrier| barrier.members.as_ref()) {
            Some(Members::Everyone(_)) => Vec::new(),
            Some(listed @ Members::Listed(_)) => listed.iter().collect(),
            None if self.job.tasks.records().any(|(_, task)| task.recoverable) => {
                self.job.tasks.ids().filter(|task| !self.job.recoverable(*task)).collect()
            }
            None => Vec::new(),
        }
    }
}

/// What a task that shuts down is told when the shutdown barrier ends.
pub(crate) fn shutdown_reply(verdict: &Verdict) -> Reply {
    match verdict.as_ref().map_err(Arc::as_ref) {
        Ok(()) => Ok(Answer::Done),
        Err(fault) => Err(Fault::ShutdownFailed { cause: fault.cited() }),
    }
}
