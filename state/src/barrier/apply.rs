//! Commands on barriers, with their limits.

use crate::barrier::{Arrival, Arrived, Command};
use crate::command::{Answer, Reply};
use crate::fault::Fault;
use crate::ids::{BarrierName, DurationMs};
use crate::job::turn::Turn;
use crate::limits::{BARRIER_NAME_BYTES_MAX, JOB_BARRIERS_MAX, TIMEOUT_MS_MAX, within};
use crate::wait::Ticket;

impl Turn<'_> {
    pub(crate) fn barrier(&mut self, command: Command) -> Reply {
        match command {
            Command::Arrive { scope: _, barrier, counter, timeout_ms, tasks, task } => {
                let name = self.barrier_name(&barrier)?;
                let timeout = DurationMs(u64::try_from(timeout_ms).unwrap_or(0).min(TIMEOUT_MS_MAX));
                match self.arrive(Arrival { name: name.clone(), counter, timeout, tasks: &tasks, task }) {
                    Arrived::Waiting(counter) => Ok(Answer::Waiting(Ticket::Barrier {
                        job: self.job.id,
                        barrier: name,
                        counter,
                        task,
                        call: self.call(),
                    })),
                    Arrived::Over(counter, Ok(())) => Ok(Answer::BarrierPassed { counter }),
                    Arrived::Over(_, Err(fault)) => Err(Fault::clone(&fault)),
                }
            }
            Command::Cancel { scope: _, barrier, counter, task } => {
                let name = self.barrier_name(&barrier)?;
                self.cancel(&name, counter, task)
            }
            Command::Expire { job: _, barrier, counter } => self.expire_barrier(&barrier, counter),
        }
    }

    /// The name, if it is known already or there is room for another.
    fn barrier_name(&self, text: &str) -> Result<BarrierName, Fault> {
        within("barrier id bytes", text.len() as u64, BARRIER_NAME_BYTES_MAX as u64)?;
        let name = BarrierName::from(text);
        if self.job.barriers.get(&name).is_none() {
            within("barrier ids of the job", self.job.barrier_ids() + 1, JOB_BARRIERS_MAX as u64)?;
        }
        Ok(name)
    }
}
