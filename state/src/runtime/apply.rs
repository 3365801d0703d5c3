//! Commands on the runtime, and the checks that they share. The order of the checks is upstream's.

use bytes::Bytes;

use crate::command::{Effect, Reply};
use crate::fault::Fault;
use crate::ids::{Key, TaskId};
use crate::job::record::Job;
use crate::job::turn::Turn;
use crate::runtime::record::{Phase, Runtime};
use crate::runtime::{Call, Command, INCARNATION, Refusal, keys};
use crate::wait::DomainId;

impl Turn<'_> {
    pub(crate) fn runtime(&mut self, command: Command) -> Reply {
        match command {
            Command::Connect { scope: _, task, client } => self.connect_to_runtime(task, client),
            Command::ConnectFrom { scope: _, task, client, origin } => {
                // Every life of a task has the same number here, so nothing is known of an earlier process any more.
                let reply = self.connect_to_runtime(task, client);
                if reply.is_ok() {
                    self.job.domains.origins.forget(task);
                    self.registered_from(task, INCARNATION, *origin);
                }
                reply
            }
            Command::Withdraw { scope: _, task, client, waited_ms } => {
                self.withdraw_from_runtime(task, client, waited_ms)
            }
            Command::Enumerate { scope: _, task, topology } => self.enumerate(task, topology),
            Command::Arrive { scope: _, barrier, task } => self.arrive_in_runtime(barrier, task),
            Command::GiveUp { scope: _, barrier, waited_ms } => self.give_up_barrier(barrier, waited_ms),
            Command::Shutdown { scope: _, task } => self.shut_down_runtime(task),
            Command::GiveUpShutdown { scope: _, waited_ms } => self.give_up_shutdown(waited_ms),
            Command::Put { scope: _, key, value } => {
                self.job.check_running(Call::Put)?;
                self.put(Key(keys::stored(&key).into()), value, Bytes::new())
            }
        }
    }

    /// The runtime, when it runs.
    pub(super) fn running(&mut self, call: Call) -> Result<&mut Runtime, Fault> {
        self.job.check_running(call)?;
        Ok(self.job.runtime.as_mut().expect("only what exists runs"))
    }

    /// Wakes those who wait for something of the runtime.
    pub(super) fn runtime_changed(&mut self) {
        self.effect(Effect::DomainChanged { domain: DomainId::Runtime, job: self.job.id });
    }
}

impl Job {
    /// Whether the runtime takes calls of connected tasks.
    pub(crate) fn check_running(&self, call: Call) -> Result<(), Fault> {
        match self.runtime.as_deref().map(|runtime| runtime.phase) {
            Some(Phase::Running) => Ok(()),
            Some(Phase::Closed { lost: Some(task) }) => Err(Refusal::Lost { task }.into()),
            Some(Phase::Initializing | Phase::Closed { lost: None }) | None => {
                Err(Refusal::NotRunning { call }.into())
            }
        }
    }

    /// Whether all tasks have connected, however long ago.
    pub(crate) fn runtime_started(&self) -> bool {
        self.runtime.as_ref().is_some_and(|runtime| runtime.phase != Phase::Initializing)
    }

    /// Whether the job has this task.
    pub(crate) fn check_runtime_task(&self, task: TaskId) -> Result<(), Fault> {
        if self.tasks.contains(task) {
            Ok(())
        } else {
            Err(Refusal::TaskUnknown { task, tasks: self.spec.tasks }.into())
        }
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Runtime(refusal)
    }
}
