//! The device exchange of dialect T: everybody hands in a list, and gets all lists when all have.

use bytes::Bytes;

use crate::barrier::instance::Verdict;
use crate::barrier::{Arrival, Arrived};
use crate::command::{Answer, Reply};
use crate::fault::{Asked, Fault};
use crate::ids::{BarrierCounter, DurationMs, TaskId};
use crate::job::record::Job;
use crate::job::turn::Turn;
use crate::limits::{DEVICES_BYTES_MAX, JOB_BYTES_MAX, within};
use crate::wait::Ticket;

/// How long upstream waits for all tasks.
const TIMEOUT: DurationMs = DurationMs(3_600_000);

impl Turn<'_> {
    /// Keeps the first list of each task. A list of all devices is read by the ticket, for it is
    /// long and replies are remembered.
    pub(crate) fn exchange_devices(&mut self, task: TaskId, devices: Vec<Bytes>) -> Reply {
        self.known(task, Asked::Report)?;
        let size: u64 = devices.iter().map(|device| device.len() as u64).sum();
        let total = self.job.tasks.device_bytes() + size;
        within("bytes of a task's devices", size, DEVICES_BYTES_MAX as u64)?;
        within("bytes of the job's devices", total, JOB_BYTES_MAX)?;
        self.job.tasks.set_devices(task, devices);
        let name = self.job.devices_barrier();
        let call = self.call();
        let arrival =
            Arrival { name: name.clone(), counter: BarrierCounter(0), timeout: TIMEOUT, tasks: &[], task };
        match self.arrive(arrival) {
            Arrived::Over(_, Err(fault)) => Err(Fault::clone(&fault)),
            Arrived::Over(_, Ok(())) | Arrived::Waiting(_) => {
                Ok(Answer::Waiting(Ticket::Devices { job: self.job.id, barrier: name, task, call }))
            }
        }
    }
}

impl Job {
    /// What a device exchange is told when its barrier ends.
    pub(crate) fn devices_reply(&self, verdict: &Verdict) -> Reply {
        match verdict {
            Ok(()) => {
                let lists = self.tasks.records().filter_map(|(_, task)| task.devices.as_ref());
                let devices = lists.flat_map(|list| list.iter().cloned()).collect();
                Ok(Answer::Devices { service: self.service, devices })
            }
            Err(fault) => Err(Fault::clone(fault)),
        }
    }
}
