//! A job's runtime and what it knows of each task.

use bytes::Bytes;
use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

use crate::ids::{CallId, ClientId, TaskId};
use crate::memory::{Weigh, Weighed, of_set};
use crate::runtime::BarrierId;

/// The runtime of one job; it begins with the first connect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Runtime {
    pub(crate) phase: Phase,
    /// How many calls have asked to leave.
    pub(crate) shutdowns: u32,
    /// How many of the tasks that left alone have fallen silent since. See [`super::leave`].
    pub(crate) departed: u32,
    members: Weighed<TaskId, Member>,
    barriers: Weighed<BarrierId, Barrier>,
    // Derived from the maps.
    present: u32,
    enumerated: u32,
    topology_bytes: u64,
    barriers_open: u32,
}

/// Where a runtime stands. It only ever goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Not all tasks have connected.
    #[default]
    Initializing,
    Running,
    /// All left, or leaving together failed, or a task was `lost`.
    Closed {
        lost: Option<TaskId>,
    },
}

/// A task that has connected, or tried to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Member {
    /// Who connected last.
    pub(crate) client: ClientId,
    /// The first call of that client since it took the place of another one.
    pub(crate) since: CallId,
    /// Whether it waits for the others, or was connected with them.
    pub(crate) present: bool,
    pub(crate) topology: Option<Bytes>,
}

/// A barrier id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Barrier {
    /// Who has arrived; fewer than all.
    Open(OrdSet<TaskId>),
    Passed,
    /// A call gave up.
    Spoiled,
}

impl Runtime {
    /// One of a snapshot, without its members and barriers.
    pub(crate) fn new(phase: Phase, shutdowns: u32, departed: u32) -> Self {
        Self { phase, shutdowns, departed, ..Self::default() }
    }

    /// What it takes, roughly.
    pub(crate) fn bytes(&self) -> u64 {
        self.members.bytes().saturating_add(self.barriers.bytes())
    }

    /// The same from all of it.
    pub(crate) fn recounted(&self) -> u64 {
        self.members.recounted().saturating_add(self.barriers.recounted())
    }

    pub(crate) fn present(&self) -> u32 {
        self.present
    }

    pub(crate) fn enumerated(&self) -> u32 {
        self.enumerated
    }

    pub(crate) fn topology_bytes(&self) -> u64 {
        self.topology_bytes
    }

    pub(crate) fn barriers_open(&self) -> u32 {
        self.barriers_open
    }

    pub(crate) fn member(&self, task: TaskId) -> Option<&Member> {
        self.members.get(&task)
    }

    pub(crate) fn members(&self) -> &OrdMap<TaskId, Member> {
        &self.members
    }

    pub(crate) fn barrier(&self, id: &BarrierId) -> Option<&Barrier> {
        self.barriers.get(id)
    }

    pub(crate) fn barriers(&self) -> &OrdMap<BarrierId, Barrier> {
        &self.barriers
    }

    pub(crate) fn set_member(&mut self, task: TaskId, member: Member) {
        let bytes = |member: &Member| member.topology.as_ref().map_or(0, |topology| topology.len() as u64);
        self.present += u32::from(member.present);
        self.enumerated += u32::from(member.topology.is_some());
        self.topology_bytes += bytes(&member);
        if let Some(before) = self.members.insert(task, member) {
            self.present -= u32::from(before.present);
            self.enumerated -= u32::from(before.topology.is_some());
            self.topology_bytes -= bytes(&before);
        }
    }

    pub(crate) fn set_barrier(&mut self, id: BarrierId, barrier: Barrier) {
        let open = |barrier: &Barrier| u32::from(matches!(barrier, Barrier::Open(_)));
        self.barriers_open += open(&barrier);
        if let Some(before) = self.barriers.insert(id, barrier) {
            self.barriers_open -= open(&before);
        }
    }

    /// Puts back a task of a snapshot; `false` unless it comes after all others.
    pub(crate) fn restore_member(&mut self, task: TaskId, member: Member) -> bool {
        let ascending = self.members.get_max().is_none_or(|(last, _)| *last < task);
        self.set_member(task, member);
        ascending
    }

    /// Puts back a barrier of a snapshot; `false` unless it comes after all others.
    pub(crate) fn restore_barrier(&mut self, id: BarrierId, barrier: Barrier) -> bool {
        let ascending = self.barriers.get_max().is_none_or(|(last, _)| *last < id);
        self.set_barrier(id, barrier);
        ascending
    }
}

impl Weigh for Member {
    fn outside(&self) -> u64 {
        self.topology.as_ref().map_or(0, Weigh::outside)
    }
}

impl Weigh for BarrierId {
    fn outside(&self) -> u64 {
        self.0.outside()
    }
}

impl Weigh for Barrier {
    fn outside(&self) -> u64 {
        match self {
            Self::Open(arrived) => of_set::<TaskId>(arrived.len()),
            Self::Passed | Self::Spoiled => 0,
        }
    }
}
