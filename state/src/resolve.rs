//! What became of a wait. Any node can tell, because the state keeps what a waiter needs.

use crate::barrier::REGISTER_BARRIER;
use crate::barrier::instance::Verdict;
use crate::command::{Answer, Reply};
use crate::fault::Fault;
use crate::ids::{BarrierName, CallId, TaskId};
use crate::job::record::Job;
use crate::kv;
use crate::state::State;
use crate::task::leave::shutdown_reply;
use crate::task::register::registration_reply;
use crate::wait::Ticket;

impl State {
    /// The outcome of a wait, or `None` while it must go on.
    #[must_use]
    pub fn resolve(&self, ticket: &Ticket) -> Option<Reply> {
        let Some(job) = self.jobs.get(ticket.job()) else {
            return Some(Err(Fault::JobUnknown { name: None }));
        };
        match ticket {
            Ticket::Register { task, call, .. } => {
                let verdict = job.arrival(&BarrierName::from(REGISTER_BARRIER), *task, *call)?;
                Some(registration_reply(&verdict, job.service))
            }
            Ticket::Barrier { barrier, counter, task, call, .. } => {
                let outcome = match job.barriers.get(barrier) {
                    Some(found) => found.outcome(barrier, *counter, *task, *call)?,
                    None => {
                        return Some(Err(Fault::ArrivalReplaced {
                            barrier: barrier.clone(),
                            counter: *counter,
                        }));
                    }
                };
                Some(match outcome {
                    Ok(()) => Ok(Answer::BarrierPassed { counter: *counter }),
                    Err(fault) => Err(Fault::clone(&fault)),
                })
            }
            Ticket::Shutdown { barrier, task, call, .. } => {
                Some(shutdown_reply(&job.arrival(barrier, *task, *call)?))
            }
            Ticket::Devices { barrier, task, call, .. } => {
                Some(job.devices_reply(&job.arrival(barrier, *task, *call)?))
            }
            Ticket::Poll { task, call, .. } => job.poll_outcome(*task, *call).map(Err),
            Ticket::Alive { group, .. } => job.alive.outcome(*group),
            Ticket::Key { scope, asked } => match job.check(*scope) {
                Ok(()) => job.value(asked).map(Ok),
                Err(fault) => Some(Err(fault)),
            },
            Ticket::Runtime { wait, .. } => job.runtime_outcome(wait),
            Ticket::Tasks { scope, seen } => match job.check(*scope) {
                Ok(()) => job.changed_since(*seen).map(|report| report.map(Answer::Tasks)),
                Err(fault) => Some(Err(fault)),
            },
        }
    }
}

impl Job {
    /// How an arrival at one of the job's own barriers ended, or `None` while it waits.
    fn arrival(&self, name: &BarrierName, task: TaskId, call: CallId) -> Option<Verdict> {
        match self.barriers.get(name) {
            Some(barrier) => barrier.outcome_of_call(name, task, call),
            // A ticket is only given out after its barrier came into being, and none is forgotten.
            None => Some(Err(Fault::JobUnknown { name: None }.into())),
        }
    }

    /// A key, normalised or not, as the answer to who asks for it.
    pub(crate) fn value(&self, asked: &str) -> Option<Answer> {
        let key = kv::normalize(asked);
        let entry = self.store.get(&key)?;
        let (value, version, modified) = (entry.value.clone(), entry.version, entry.modified);
        Some(Answer::Value { key, value, version, modified })
    }
}
