//! Where a task stands, in words for people. A protocol's own words for it are fewer.

use crate::barrier::REGISTER_BARRIER;
use crate::fault::Fault;
use crate::ids::{BarrierName, TaskId};
use crate::job::record::Job;
use crate::runtime::record::Phase as RuntimePhase;
use crate::task::record::Life;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// No process of it has registered.
    NeverCame,
    /// It waits for the others to register.
    Registering,
    Connected,
    /// It left properly, or was reset.
    Left,
    /// It was silent for too long.
    Lost,
    /// Its process ended without leaving, as whoever started it saw.
    Ended,
    /// It is in error for another reason: its own, or that of another task.
    Failed,
}

impl Standing {
    /// What people read and programs go by.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::NeverCame => "never-came",
            Self::Registering => "registering",
            Self::Connected => "connected",
            Self::Left => "left",
            Self::Lost => "lost",
            Self::Ended => "ended",
            Self::Failed => "error",
        }
    }
}

impl Job {
    /// Where the task stands.
    pub(crate) fn standing(&self, task: TaskId) -> Standing {
        let record = self.tasks.get(task);
        match &record.life {
            Life::Connected => Standing::Connected,
            Life::Error(fault) if self.fails_by_its_end(task, fault) => Standing::Ended,
            Life::Error(fault) if matches!(fault.as_ref(), Fault::HeartbeatTimeout { .. }) => Standing::Lost,
            Life::Error(_) => Standing::Failed,
            Life::Disconnected { .. } if self.registers(task) => Standing::Registering,
            Life::Disconnected { grace_until: Some(_) } => Standing::Left,
            Life::Disconnected { grace_until: None }
                if self.domains.ends.of(task, record.incarnation).is_some() =>
            {
                Standing::Ended
            }
            Life::Disconnected { grace_until: None } => Standing::NeverCame,
        }
    }

    /// Whether it waits for the others to register, or to connect to the runtime.
    fn registers(&self, task: TaskId) -> bool {
        self.waits_to_register(task) || self.connects_to_runtime(task)
    }

    /// Whether it waits at the register barrier.
    pub(crate) fn waits_to_register(&self, task: TaskId) -> bool {
        let barrier = self.barriers.get(&BarrierName::from(REGISTER_BARRIER));
        barrier.is_some_and(|barrier| barrier.current.arrived.contains_key(&task))
    }

    fn connects_to_runtime(&self, task: TaskId) -> bool {
        let begins = self.runtime.as_ref().filter(|runtime| runtime.phase == RuntimePhase::Initializing);
        begins.and_then(|runtime| runtime.member(task)).is_some_and(|member| member.present)
    }

    /// Whether the end of its own process is what it is in error with. The end of one that had failed before is not.
    fn fails_by_its_end(&self, task: TaskId, fault: &Fault) -> bool {
        match fault {
            // As said by a launcher that does not say how.
            Fault::HeartbeatTimeout { .. } => {
                let incarnation = self.tasks.get(task).incarnation;
                self.domains.processes.of(task, incarnation).is_some_and(|known| known.shown().ended)
            }
            fault => fault.tells_an_end_of(task),
        }
    }
}
