//! The exchange of topologies, which the state does not look into.

use bytes::Bytes;

use crate::command::{Answer, Reply};
use crate::ids::TaskId;
use crate::job::turn::Turn;
use crate::limits::{DEVICES_BYTES_MAX, JOB_BYTES_MAX, within};
use crate::runtime::record::Member;
use crate::runtime::{Call, Wait};
use crate::wait::Ticket;

impl Turn<'_> {
    /// Keeps the last topology of each task until all have handed one in, and none that comes later:
    /// everybody is told the same.
    pub(super) fn enumerate(&mut self, task: TaskId, topology: Bytes) -> Reply {
        self.running(Call::Enumerate)?;
        self.job.check_runtime_task(task)?;
        let (tasks, others) = (self.job.spec.tasks, self.job.tasks.device_bytes());
        let ticket = Ticket::Runtime { job: self.job.id, wait: Wait::Enumerate };
        let runtime = self.running(Call::Enumerate)?;
        if runtime.enumerated() == tasks {
            return Ok(Answer::Waiting(ticket));
        }
        let member = runtime.member(task).expect("all tasks are members of what runs").clone();
        let before = member.topology.as_ref().map_or(0, |topology| topology.len() as u64);
        let size = topology.len() as u64;
        within("bytes of a task's devices", size, DEVICES_BYTES_MAX as u64)?;
        let total = others + runtime.topology_bytes() - before + size;
        within("bytes of the job's devices", total, JOB_BYTES_MAX)?;
        runtime.set_member(task, Member { topology: Some(topology), ..member });
        if runtime.enumerated() == tasks {
            self.runtime_changed();
        }
        Ok(Answer::Waiting(ticket))
    }
}
