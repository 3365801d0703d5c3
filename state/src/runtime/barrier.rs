//! Barriers of all tasks. An id serves once, whether it passes or not.

use imbl::OrdSet;

use crate::command::{Answer, Reply};
use crate::ids::TaskId;
use crate::job::turn::Turn;
use crate::limits::{BARRIER_NAME_BYTES_MAX, JOB_BARRIERS_MAX, within};
use crate::runtime::record::{Barrier, Phase};
use crate::runtime::{BarrierId, Call, Refusal, Wait};
use crate::wait::Ticket;

impl Turn<'_> {
    /// Upstream counts the calls, and a task that calls twice passes for two; here it counts once.
    pub(super) fn arrive_in_runtime(&mut self, id: BarrierId, task: TaskId) -> Reply {
        self.running(Call::Barrier)?;
        self.job.check_runtime_task(task)?;
        let (job, tasks, ids) = (self.job.id, self.job.spec.tasks, self.job.barrier_ids());
        let runtime = self.running(Call::Barrier)?;
        let mut arrived = match runtime.barrier(&id) {
            Some(Barrier::Passed) => return Err(Refusal::BarrierUsed.into()),
            Some(Barrier::Spoiled) => return Err(Refusal::BarrierSpoiled.into()),
            Some(Barrier::Open(arrived)) => arrived.clone(),
            None => {
                within("barrier id bytes", id.0.len() as u64, BARRIER_NAME_BYTES_MAX as u64)?;
                within("barrier ids of the job", ids + 1, JOB_BARRIERS_MAX as u64)?;
                OrdSet::new()
            }
        };
        arrived.insert(task);
        if arrived.len() == tasks as usize {
            runtime.set_barrier(id, Barrier::Passed);
            self.runtime_changed();
            return Ok(Answer::Done);
        }
        runtime.set_barrier(id.clone(), Barrier::Open(arrived));
        Ok(Answer::Waiting(Ticket::Runtime { job, wait: Wait::Barrier { barrier: id } }))
    }

    /// The others at the barrier go on waiting, each for its own time, as upstream lets them.
    pub(super) fn give_up_barrier(&mut self, id: BarrierId, waited_ms: i64) -> Reply {
        let timed_out = Refusal::TimedOut { call: Call::Barrier, waited_ms };
        let waited = self.job.runtime_report(&id);
        let Some(runtime) = &mut self.job.runtime else { return Err(timed_out.into()) };
        match (runtime.barrier(&id), runtime.phase) {
            (Some(Barrier::Passed), _) => return Ok(Answer::Done),
            (_, Phase::Closed { lost: Some(task) }) => return Err(Refusal::Lost { task }.into()),
            (Some(Barrier::Open(_)), _) => runtime.set_barrier(id, Barrier::Spoiled),
            (Some(Barrier::Spoiled) | None, _) => {}
        }
        let fault = timed_out.into();
        self.keep_failed_in_runtime(waited, &fault);
        Err(fault)
    }
}
