//! One job: everything that its tasks share.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use imbl::OrdSet;
use serde::{Deserialize, Serialize};

use crate::command::Scope;
use crate::fault::Fault;
use crate::ids::{BarrierName, JobId, JobName, JobSlot, LogIndex, ServiceIncarnation, TaskId};
use crate::job::domains::Domains;
use crate::job::{Spec, Summary};
use crate::kv::increments::Increments;
use crate::kv::store::Store;
use crate::runtime::record::Runtime;
use crate::task;
use crate::task::record::Task;
use crate::{barrier, memory};

/// A job. No command touches two of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) id: JobId,
    pub(crate) name: JobName,
    pub(crate) slot: Option<JobSlot>,
    pub(crate) service: ServiceIncarnation,
    pub(crate) spec: Spec,
    /// What that takes of memory. Derived.
    pub(crate) spec_bytes: u64,
    pub(crate) tasks: task::table::Table,
    pub(crate) polls: Polls,
    pub(crate) alive: task::alive::Groups,
    pub(crate) barriers: barrier::table::Table,
    pub(crate) failed_barriers: barrier::report::Failed,
    pub(crate) store: Store,
    pub(crate) increments: Increments,
    pub(crate) protocols: OrdSet<task::Protocol>,
    /// Begins with the first call that connects to it.
    pub(crate) runtime: Option<Box<Runtime>>,
    pub(crate) domains: Domains,
}

/// What is derived does not count.
impl Hash for Job {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self { id, name, slot, service, spec, tasks, polls, alive, .. } = self;
        (id, name, slot, service, spec, tasks, polls, alive).hash(hasher);
        let Self { barriers, failed_barriers, store, increments, protocols, runtime, domains, .. } = self;
        (barriers, failed_barriers, store, increments, protocols, runtime, domains).hash(hasher);
    }
}

/// What the job's polling tasks are told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Polls {
    /// A task asked for errors, so errors are told and not forced on everybody.
    pub(crate) asked: bool,
    /// The first error, for everybody and for ever; the last one where lost tasks may come back.
    pub(crate) latched: Option<Latched>,
    /// The tasks at whose own addresses the error was told.
    pub(crate) pushed: OrdSet<TaskId>,
}

/// An error that tasks are told.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Latched {
    pub(crate) fault: Arc<Fault>,
    /// When it came up.
    pub(crate) at: LogIndex,
}

impl Job {
    pub(crate) fn new(
        id: JobId,
        name: JobName,
        slot: Option<JobSlot>,
        service: ServiceIncarnation,
        spec: Spec,
    ) -> Self {
        Self {
            id,
            name,
            slot,
            service,
            tasks: task::table::Table::new(spec.tasks),
            spec_bytes: memory::spec_bytes(&spec),
            spec,
            polls: Polls::default(),
            alive: task::alive::Groups::default(),
            barriers: barrier::table::Table::default(),
            failed_barriers: barrier::report::Failed::default(),
            store: Store::default(),
            increments: Increments::default(),
            protocols: OrdSet::new(),
            runtime: None,
            domains: Domains::default(),
        }
    }

    /// Whether the caller believes in this life of the job's service.
    pub(crate) fn check(&self, scope: Scope) -> Result<(), Fault> {
        match scope.service {
            Some(requested) if requested != self.service => {
                Err(Fault::ServiceMismatch { requested, current: self.service })
            }
            _ => Ok(()),
        }
    }

    /// The error that a task is to be told. Where lost tasks may come back, what happened before a task
    /// came is not its concern: it may be the very loss that it came back from.
    pub(crate) fn error_for(&self, task: &Task) -> Option<&Arc<Fault>> {
        let latched = self.polls.latched.as_ref()?;
        let older = self.spec.reconnect && task.since > latched.at;
        (!older).then_some(&latched.fault)
    }

    /// Whether the task may restart without the others being told.
    pub(crate) fn recoverable(&self, task: TaskId) -> bool {
        self.spec.recoverable || self.tasks.get(task).recoverable
    }

    /// The barrier that every shutdown passes.
    pub(crate) fn shutdown_barrier(&self) -> BarrierName {
        BarrierName(format!("Shutdown::{}", self.service).into())
    }

    /// The barrier that a device exchange passes.
    pub(crate) fn devices_barrier(&self) -> BarrierName {
        BarrierName(format!("WaitForAllTasks::{}", self.service).into())
    }

    /// How many barrier ids the job remembers.
    pub(crate) fn barrier_ids(&self) -> u64 {
        let of_runtime = self.runtime.as_ref().map_or(0, |runtime| runtime.barriers().len());
        (self.barriers.len() + of_runtime) as u64
    }

    pub(crate) fn summary(&self) -> Summary {
        let open_in_runtime = self.runtime.as_ref().map_or(0, |runtime| runtime.barriers_open());
        Summary {
            id: self.id,
            name: self.name.clone(),
            slot: self.slot,
            service: self.service,
            spec: self.spec.clone(),
            protocols: self.protocols.iter().copied().collect(),
            tasks_connected: self.tasks.connected(),
            tasks_in_error: u32::try_from(self.tasks.in_error().len()).unwrap_or(u32::MAX),
            keys: self.store.keys(),
            key_bytes: self.store.bytes(),
            barriers_open: u32::try_from(self.barriers.open().len())
                .unwrap_or(u32::MAX)
                .saturating_add(open_in_runtime),
        }
    }
}
