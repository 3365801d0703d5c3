//! Errors: which tasks they stop, and who is told.

use std::sync::Arc;

use imbl::OrdSet;

use crate::command::{Answer, Reply};
use crate::fault::{Asked, Fault, Leaving};
use crate::ids::{Incarnation, TaskId};
use crate::job::record::Latched;
use crate::job::turn::Turn;
use crate::limits::{REPORT_BYTES_MAX, within};
use crate::runtime;
use crate::task::Phase;
use crate::task::record::Life;

/// Silent tasks that an error names; upstream names so many.
const SILENT_SHOWN: usize = 3;

impl Turn<'_> {
    /// A task says that it is broken.
    pub(crate) fn report_error(&mut self, task: TaskId, code: i32, message: String) -> Reply {
        self.known(task, Asked::Report)?;
        if self.job.tasks.get(task).phase() != Phase::Connected {
            return Err(Fault::ReporterNotConnected);
        }
        if code == 0 {
            return Err(Fault::ReportWithoutCode);
        }
        within("bytes of a reported error's text", message.len() as u64, REPORT_BYTES_MAX as u64)?;
        let fault = Arc::new(Fault::Reported { task, code, message });
        self.set_error(task, &fault);
        self.propagate(&fault, self.job.recoverable(task));
        Ok(Answer::Done)
    }

    /// The leader has not heard of these tasks for longer than the heartbeat timeout.
    pub(crate) fn expire_tasks(&mut self, mut silent: Vec<(TaskId, Incarnation)>) -> Reply {
        silent.sort_unstable();
        let mut failed = Vec::new();
        let mut quiet = true;
        for (task, incarnation) in silent {
            let record = self.job.tasks.get(task);
            if record.phase() != Phase::Connected || record.incarnation != incarnation {
                continue;
            }
            if incarnation == runtime::INCARNATION && self.job.runtime_started() {
                self.lose_runtime_task(task);
            } else {
                quiet &= self.job.recoverable(task);
                failed.push(task);
                self.set_error(task, &Arc::new(Fault::HeartbeatTimeout { task }));
            }
        }
        if !failed.is_empty() {
            failed.truncate(SILENT_SHOWN);
            self.propagate(&Arc::new(Fault::TasksUnhealthy { tasks: failed }), quiet);
        }
        Ok(Answer::Done)
    }

    /// Sets a task to error; the first error stays.
    pub(crate) fn set_error(&mut self, task: TaskId, fault: &Arc<Fault>) {
        if self.job.tasks.get(task).phase() != Phase::Error {
            self.tell_error(task, fault);
            self.enter_error(task, fault);
        }
    }

    /// The same without a word: what it comes from was told.
    pub(crate) fn enter_error(&mut self, task: TaskId, fault: &Arc<Fault>) {
        if self.job.tasks.get(task).phase() == Phase::Error {
            return;
        }
        self.set_life(task, Life::Error(Arc::clone(fault)));
        self.leave_barriers(task, &Leaving::Error(fault.cited()));
        self.refresh_alive();
        self.tasks_changed();
    }

    pub(crate) fn set_all_error(&mut self, fault: &Arc<Fault>) {
        for task in self.job.tasks.ids() {
            self.set_error(task, fault);
        }
    }

    /// Tells every polling task of an error, the first one only unless lost tasks may come back. If nobody has ever polled, every
    /// task fails instead and learns of it by its heartbeat, unless the job tells tasks by calling them. `quiet`: the error is of recoverable
    /// tasks only and concerns nobody else.
    pub(crate) fn propagate(&mut self, fault: &Arc<Fault>, quiet: bool) {
        if quiet || self.job.spec.recoverable {
            return;
        }
        if !self.job.polls.asked && self.job.spec.listeners.is_empty() {
            self.set_all_error(&Arc::new(Fault::Unheard { cause: fault.cited() }));
        } else if self.job.polls.latched.is_none() || self.job.spec.reconnect {
            self.tell_latched(fault);
            let at = self.context.index;
            self.job.polls.latched = Some(Latched { fault: Arc::clone(fault), at });
            self.job.polls.pushed = OrdSet::new();
            self.polls_changed();
        }
    }

    /// Moves a task from one life to another and keeps count of who is alive.
    pub(crate) fn set_life(&mut self, task: TaskId, life: Life) {
        let before = self.job.tasks.get(task).phase();
        self.job.tasks.set_life(task, life);
        let after = self.job.tasks.get(task).phase();
        if before != after {
            if after == Phase::Connected {
                self.job.alive.joined(task);
            } else if before == Phase::Connected {
                self.job.alive.lost(task);
            }
        }
    }

    /// Whether the job has this task.
    pub(crate) fn known(&self, task: TaskId, asked: Asked) -> Result<(), Fault> {
        if self.job.tasks.contains(task) { Ok(()) } else { Err(Fault::TaskUnknown { task, asked }) }
    }
}
