//! The deadline of a barrier instance.

use crate::command::{Answer, Reply};
use crate::fault::BarrierFault;
use crate::ids::{BarrierCounter, BarrierName, TaskId};
use crate::job::turn::Turn;

/// Missing tasks that the error names; upstream names so many.
const MISSING_SHOWN: usize = 2;

impl Turn<'_> {
    /// Ends the instance if it is still the one that the timer was for.
    pub(crate) fn expire_barrier(&mut self, name: &BarrierName, counter: BarrierCounter) -> Reply {
        let Some(barrier) = self.job.barriers.get(name) else { return Ok(Answer::Done) };
        let instance = &barrier.current;
        let Some(members) =
            barrier.members.as_ref().filter(|_| !instance.ended() && instance.counter == counter)
        else {
            return Ok(Answer::Done);
        };
        let missing: Vec<TaskId> =
            members.iter().filter(|task| !instance.arrived.contains_key(task)).take(MISSING_SHOWN).collect();
        let fault = BarrierFault::TimedOut {
            arrived: count(instance.arrived.len()),
            total: count(members.len()),
            first: instance.first,
            missing,
        };
        let _ = self.end_instance(name, Err(fault));
        Ok(Answer::Done)
    }
}

/// No barrier has more members than a job has tasks, and their number has 32 bits.
fn count(tasks: usize) -> u32 {
    u32::try_from(tasks).unwrap_or(u32::MAX)
}
