//! All barriers of a job.

use imbl::OrdSet;

use crate::barrier::instance::Barrier;
use crate::ids::{BarrierName, TaskId};
use crate::memory::{Edit, Weighed, of_set};

/// The barriers by id, and which of them have an open instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Table {
    barriers: Weighed<BarrierName, Barrier>,
    open: OrdSet<BarrierName>,
}

impl Table {
    pub(crate) fn get(&self, name: &BarrierName) -> Option<&Barrier> {
        self.barriers.get(name)
    }

    pub(crate) fn edit(&mut self, name: &BarrierName) -> Option<Edit<'_, Barrier>> {
        self.barriers.edit(name)
    }

    /// What they take, roughly.
    pub(crate) fn bytes(&self) -> u64 {
        self.barriers.bytes().saturating_add(of_set::<BarrierName>(self.open.len()))
    }

    /// The same from all of them.
    pub(crate) fn recounted(&self) -> u64 {
        self.barriers.recounted().saturating_add(of_set::<BarrierName>(self.open.len()))
    }

    pub(crate) fn len(&self) -> usize {
        self.barriers.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&BarrierName, &Barrier)> {
        self.barriers.iter()
    }

    pub(crate) fn open(&self) -> &OrdSet<BarrierName> {
        &self.open
    }

    /// The open instances that the task is a member of.
    pub(crate) fn open_for(&self, task: TaskId) -> Vec<BarrierName> {
        self.open.iter().filter(|name| self.is_open_for(name, task)).cloned().collect()
    }

    /// Adds a barrier or puts another instance in its place.
    pub(crate) fn set(&mut self, name: BarrierName, barrier: Barrier) {
        if barrier.current.ended() {
            self.open.remove(&name);
        } else {
            self.open.insert(name.clone());
        }
        self.barriers.insert(name, barrier);
    }

    /// Notes that the current instance of `name` has ended.
    pub(crate) fn closed(&mut self, name: &BarrierName) {
        self.open.remove(name);
    }

    /// Puts back a barrier of a snapshot; `false` unless it comes after all others.
    pub(crate) fn restore(&mut self, name: BarrierName, barrier: Barrier) -> bool {
        let ascending = self.barriers.get_max().is_none_or(|(last, _)| *last < name);
        self.set(name, barrier);
        ascending
    }

    fn is_open_for(&self, name: &BarrierName, task: TaskId) -> bool {
        let members = self.get(name).and_then(|barrier| barrier.members.as_ref());
        members.is_some_and(|members| members.contains(task))
    }
}
