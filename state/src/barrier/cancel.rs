//! Cancellation of a barrier instance by a task.

use crate::command::{Answer, Reply};
use crate::fault::{BarrierFault, Fault};
use crate::ids::{BarrierCounter, BarrierName, TaskId};
use crate::job::turn::Turn;

impl Turn<'_> {
    /// Cancels the current instance. An unknown id counts as an instance 0 that nobody has joined:
    /// cancelling it spoils that instance for those who come later, as upstream does.
    pub(crate) fn cancel(&mut self, name: &BarrierName, called: BarrierCounter, by: TaskId) -> Reply {
        let refuse = |counter, fault| Err(Fault::Barrier { barrier: name.clone(), counter, fault });
        let barrier = self.job.barriers.get(name);
        let counter = barrier.map_or(BarrierCounter(0), |barrier| barrier.current.counter);
        if called != counter {
            return refuse(counter, BarrierFault::CancelOfOtherInstance { called });
        }
        if let Some(end) = barrier.and_then(|barrier| barrier.current.end.as_ref()) {
            let result = end.stored.as_ref().err().map(|fault| fault.cited());
            return refuse(counter, BarrierFault::CancelAfterEnd { result });
        }
        if barrier.is_none() {
            self.unopened(name, by);
        }
        let _ = self.end_instance(name, Err(BarrierFault::Cancelled { by }));
        Ok(Answer::Done)
    }
}
