//! The end of a runtime: all tasks leave together, or one falls silent.
//!
//! A call to leave does not tell which task it comes from, so the calls are counted. In a job whose
//! tasks leave alone that is a riddle: whoever has left sends no heartbeats any more and cannot be
//! told from one that died. There, as many tasks may fall silent as have left.

use std::sync::Arc;

use crate::command::{Answer, Reply};
use crate::fault::Fault;
use crate::ids::{DurationMs, TaskId};
use crate::job::Spec;
use crate::job::turn::Turn;
use crate::limits::FAILED_BARRIERS_KEPT;
use crate::runtime::record::Phase;
use crate::runtime::{Call, INCARNATION, Refusal, Wait};
use crate::task::Phase as TaskPhase;
use crate::wait::Ticket;

impl Turn<'_> {
    pub(super) fn shut_down_runtime(&mut self, task: TaskId) -> Reply {
        self.running(Call::Shutdown)?;
        self.job.check_runtime_task(task)?;
        let (tasks, alone) = (self.job.spec.tasks, leaves_alone(&self.job.spec));
        let runtime = self.running(Call::Shutdown)?;
        runtime.shutdowns += 1;
        if runtime.shutdowns == tasks {
            runtime.phase = Phase::Closed { lost: None };
            self.disconnect_runtime();
            self.runtime_changed();
            return Ok(Answer::Done);
        }
        if alone {
            return Ok(Answer::Done);
        }
        Ok(Answer::Waiting(Ticket::Runtime { job: self.job.id, wait: Wait::Shutdown }))
    }

    pub(super) fn give_up_shutdown(&mut self, waited_ms: i64) -> Reply {
        let timed_out = Refusal::TimedOut { call: Call::Shutdown, waited_ms };
        let tasks = self.job.spec.tasks;
        let waited = self.job.runtime.as_deref().and_then(|runtime| self.job.leaving(runtime));
        let Some(runtime) = &mut self.job.runtime else { return Err(timed_out.into()) };
        match runtime.phase {
            Phase::Closed { lost: Some(task) } => return Err(Refusal::Lost { task }.into()),
            Phase::Closed { lost: None } if runtime.shutdowns == tasks => return Ok(Answer::Done),
            Phase::Running => runtime.phase = Phase::Closed { lost: None },
            Phase::Initializing | Phase::Closed { lost: None } => {}
        }
        let fault = timed_out.into();
        self.keep_failed_in_runtime(waited, &fault);
        Err(fault)
    }

    /// A connected task was silent for longer than the heartbeat timeout. Unless it may have left
    /// alone, the runtime is closed for everybody; who is already told another task's name is not
    /// told this one's.
    pub(crate) fn lose_runtime_task(&mut self, task: TaskId) {
        let alone = leaves_alone(&self.job.spec);
        let runtime = self.job.runtime.as_mut().expect("the caller checked that it has started");
        if alone && runtime.departed < runtime.shutdowns {
            runtime.departed += 1;
            self.disconnect(task).expect("it is connected");
            return;
        }
        if !matches!(runtime.phase, Phase::Closed { lost: Some(_) }) {
            let waited: Vec<_> = self.job.runtime_reports().take(FAILED_BARRIERS_KEPT).collect();
            self.keep_failed_in_runtime(waited, &Refusal::Lost { task }.into());
            let runtime = self.job.runtime.as_mut().expect("as above");
            runtime.phase = Phase::Closed { lost: Some(task) };
            self.runtime_changed();
        }
        self.set_error(task, &Arc::new(Fault::HeartbeatTimeout { task }));
    }

    /// All have left: nobody's heartbeats are waited for any more.
    fn disconnect_runtime(&mut self) {
        for task in self.job.tasks.ids() {
            let record = self.job.tasks.get(task);
            if record.incarnation == INCARNATION && record.phase() == TaskPhase::Connected {
                self.disconnect(task).expect("it is connected");
            }
        }
    }
}

/// Whether tasks leave without waiting for each other.
pub(super) fn leaves_alone(spec: &Spec) -> bool {
    !spec.shutdown_barrier || spec.shutdown_timeout_ms == DurationMs(0)
}
