//! The end of a barrier instance, and what hangs on it for the barriers with a meaning.

use std::sync::Arc;

use crate::barrier::REGISTER_BARRIER;
use crate::barrier::instance::{End, Verdict, Void};
use crate::fault::{BarrierFault, Fault, Leaving};
use crate::ids::{BarrierCounter, BarrierName, TaskId};
use crate::job::turn::Turn;

impl Turn<'_> {
    /// Ends the current instance, or replaces the stored result of one that has ended. Tells the
    /// instance's counter and the result.
    pub(crate) fn end_instance(
        &mut self,
        name: &BarrierName,
        result: Result<(), BarrierFault>,
    ) -> (BarrierCounter, Verdict) {
        let at = self.call();
        let barrier = self.job.barriers.get(name).expect("only a known barrier ends");
        let (counter, is_over) = (barrier.current.counter, barrier.current.ended());
        let verdict: Verdict =
            result.map_err(|fault| Arc::new(Fault::Barrier { barrier: name.clone(), counter, fault }));
        if let Err(fault) = &verdict {
            self.keep_failed(name, fault);
            if !is_over {
                self.tell_barrier_failed(name, counter, fault);
            }
        }
        let mut barrier = self.job.barriers.edit(name).expect("as above");
        let waited = std::mem::take(&mut barrier.current.arrived);
        match &mut barrier.current.end {
            Some(end) => end.stored = verdict.clone(),
            open @ None => *open = Some(End { at, told: verdict.clone(), stored: verdict.clone() }),
        }
        drop(barrier);
        self.job.barriers.closed(name);
        self.barrier_changed(name);
        if name.as_str() == REGISTER_BARRIER {
            match &verdict {
                Ok(()) => {
                    for (task, call) in &waited {
                        self.connect_registered(*task, *call);
                    }
                }
                Err(fault) => {
                    let cause = fault.cited();
                    self.set_all_error(&Arc::new(Fault::RegistrationFailed { cause }));
                }
            }
        } else if *name == self.job.shutdown_barrier() {
            self.complete_shutdown(&verdict);
        }
        (counter, verdict)
    }

    /// A task left or failed: its open barriers fail, or go on without it if it may come back.
    pub(crate) fn leave_barriers(&mut self, task: TaskId, reason: &Leaving) {
        let recoverable = self.job.recoverable(task);
        for name in self.job.barriers.open_for(task) {
            // The end of one barrier can end others of this list.
            let Some(mut barrier) = self.job.barriers.edit(&name).filter(|barrier| !barrier.current.ended())
            else {
                continue;
            };
            if recoverable {
                let waited = barrier.current.void(task, Void::Left(reason.clone()));
                drop(barrier);
                if waited {
                    self.barrier_changed(&name);
                }
            } else {
                drop(barrier);
                let _ =
                    self.end_instance(&name, Err(BarrierFault::MemberLost { task, reason: reason.clone() }));
            }
        }
    }

    fn complete_shutdown(&mut self, verdict: &Verdict) {
        match verdict {
            Ok(()) => {
                for task in self.job.tasks.not_disconnected() {
                    if !self.job.recoverable(task) {
                        // A task that an earlier one's leaving disconnected needs no second time.
                        let _ = self.disconnect(task);
                    }
                }
            }
            Err(fault) => {
                let failed = Arc::new(Fault::ShutdownFailed { cause: fault.cited() });
                // Told before it is forced, so that those who poll get this error and no other.
                self.propagate(&failed, false);
                self.set_all_error(&failed);
            }
        }
    }
}
