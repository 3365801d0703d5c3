//! Registration: a task joins its job, all tasks at once.

use std::sync::Arc;

use crate::barrier::instance::Verdict;
use crate::barrier::{Arrival, Arrived, REGISTER_BARRIER};
use crate::command::{Answer, Effect, Reply};
use crate::fault::{Asked, BarrierFault, Fault, Leaving};
use crate::ids::{BarrierCounter, BarrierName, CallId, Incarnation, ServiceIncarnation, TaskId};
use crate::job::turn::Turn;
use crate::task::Protocol;
use crate::task::record::Life;
use crate::wait::Ticket;

/// The status code of a task that cannot be reached, on the wire of every dialect.
pub(crate) const UNAVAILABLE: i32 = 14;

impl Turn<'_> {
    /// Notes what the job's tasks speak. A mixture is let in and told.
    pub(crate) fn speaks(&mut self, protocol: Protocol) {
        let fresh = self.job.protocols.insert(protocol).is_none();
        if fresh && self.job.protocols.len() > 1 {
            self.effect(Effect::ProtocolsMixed { job: self.job.id, protocol });
        }
    }

    pub(crate) fn register(&mut self, task: TaskId, incarnation: Incarnation, recoverable: bool) -> Reply {
        self.known(task, Asked::Register)?;
        self.job.tasks.edit(task).recoverable = recoverable;
        let recoverable = self.job.recoverable(task);
        let record = self.job.tasks.get(task);
        let refusal = match &record.life {
            Life::Disconnected { .. } => return self.join(task, incarnation),
            Life::Error(fault) if (recoverable || self.job.spec.reconnect) && unreachable(fault) => {
                return self.join(task, incarnation);
            }
            Life::Connected if recoverable || record.incarnation == incarnation => {
                return Ok(self.connect_again(task, incarnation));
            }
            Life::Connected => Fault::Restarted { task },
            Life::Error(fault) => Fault::RegisteredInError { task, existing: fault.cited() },
        };
        let fault = Arc::new(refusal);
        self.set_error(task, &fault);
        self.propagate(&fault, recoverable);
        Err(Fault::clone(&fault))
    }

    /// Goes through the register barrier, which holds everybody until all have come and nobody later.
    fn join(&mut self, task: TaskId, incarnation: Incarnation) -> Reply {
        let call = self.call();
        self.note_return(task, incarnation);
        self.tell_registered(task, self.job.tasks.get(task).incarnation, incarnation);
        self.job.domains.ends.forget(task);
        let mut record = self.job.tasks.edit(task);
        record.incarnation = incarnation;
        record.registering = Some(call);
        drop(record);
        let arrived = self.arrive(Arrival {
            name: BarrierName::from(REGISTER_BARRIER),
            counter: BarrierCounter(0),
            timeout: self.job.spec.register_timeout_ms,
            tasks: &[],
            task,
        });
        let reply = match arrived {
            Arrived::Waiting(_) => {
                Ok(Answer::Waiting(Ticket::Register { job: self.job.id, task, incarnation, call }))
            }
            Arrived::Over(_, verdict) => {
                if verdict.is_ok() {
                    self.connect_registered(task, call);
                }
                self.job.tasks.edit(task).registering = None;
                registration_reply(&verdict, self.job.service)
            }
        };
        self.tasks_changed();
        reply
    }

    /// The register barrier passed: connects the task if that call is its last registration.
    pub(crate) fn connect_registered(&mut self, task: TaskId, call: CallId) {
        let mut record = self.job.tasks.edit(task);
        if record.registering == Some(call) {
            record.registering = None;
            let incarnation = record.incarnation;
            drop(record);
            self.connect(task, incarnation);
        }
    }

    /// A reply was lost, or a recoverable task restarted.
    fn connect_again(&mut self, task: TaskId, incarnation: Incarnation) -> Answer {
        self.note_return(task, incarnation);
        self.tell_life(task, self.job.tasks.get(task).incarnation, incarnation);
        self.job.tasks.edit(task).incarnation = incarnation;
        self.connect(task, incarnation);
        if self.job.recoverable(task) {
            self.leave_barriers(task, &Leaving::ConnectedAgain);
        }
        // Upstream counts this event twice, and watchers see the number.
        self.tasks_changed();
        Answer::Registered { service: self.job.service }
    }

    pub(crate) fn connect(&mut self, task: TaskId, incarnation: Incarnation) {
        self.job.tasks.edit(task).since = self.context.index;
        self.job.domains.ends.forget(task);
        self.job.domains.intervals.begin(task, incarnation);
        self.job.domains.processes.begin(task, incarnation);
        self.job.domains.origins.begin(task, incarnation);
        self.set_life(task, Life::Connected);
        self.tell_connected(task);
        self.task_connected(task, incarnation);
        self.tasks_changed();
    }
}

/// What a registration is told when its barrier ends.
pub(crate) fn registration_reply(verdict: &Verdict, service: ServiceIncarnation) -> Reply {
    match verdict.as_ref().map_err(|fault| Fault::clone(fault)) {
        Ok(()) => Ok(Answer::Registered { service }),
        // Every way to be cancelled reads as a newer registration, which clients take as final.
        Err(
            Fault::ArrivalReplaced { .. }
            | Fault::Barrier {
                fault: BarrierFault::Cancelled { .. } | BarrierFault::StaleArrival { .. }, ..
            },
        ) => Err(Fault::RegistrationReplaced),
        Err(fault) => Err(fault),
    }
}

/// Whether the error says that the task was lost, so that it may come back if it is recoverable.
fn unreachable(fault: &Fault) -> bool {
    match fault {
        Fault::HeartbeatTimeout { .. } => true,
        Fault::Reported { code, .. } => *code == UNAVAILABLE,
        _ => false,
    }
}
