//! The tasks that wait, sorted by what the planner asks for.
//!
//! A task is *ready* when all objects among its arguments can be had and its time has come. Ready tasks stand in one
//! set per function and class, by their priority and then by how many arguments would have to be fetched if a store had
//! none of them; and in one set per function, class and store by their priority and how many that store lacks, if it has
//! any. The best task for a worker is the first of the two sets' firsts: the first set may say too much, never too
//! little. A class is the least that a worker must offer; most tasks are of the one that needs nothing.

use std::collections::{BTreeMap, BTreeSet};

use imbl::{OrdMap, OrdSet};

use crate::ids::TimeMs;
use crate::ray::Ray;
use crate::ray::command::Algorithm;
use crate::ray::function::Slot;
use crate::ray::ids::{ObjectId, OperationId, StoreId};
use crate::ray::object::Target;
use crate::ray::operation::{Entry, Stage};
use crate::ray::resources::{Class, Demand, Turn};

/// All queued tasks. Derived.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) waiting: OrdMap<OperationId, Waiting>,
    /// Queued tasks by the objects that they wait for, or waited for.
    pub(crate) users: OrdSet<(ObjectId, OperationId)>,
    pub(crate) ready: OrdSet<Far>,
    pub(crate) near: OrdSet<Near>,
    /// Tasks that are tried again later.
    pub(crate) delayed: OrdSet<(TimeMs, OperationId)>,
}

/// A ready task, by what a store lacks that has none of its arguments.
pub(crate) type Far = (Slot, Class, Turn, u32, OperationId);
/// A ready task, by what a store lacks that has some.
pub(crate) type Near = (Slot, Class, StoreId, Turn, u32, OperationId);

/// A queued task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) slot: Slot,
    /// How many of its objects cannot be had yet.
    pub(crate) missing: u32,
    pub(crate) delayed: Option<TimeMs>,
}

impl Waiting {
    pub(crate) fn is_ready(&self) -> bool {
        self.missing == 0 && self.delayed.is_none()
    }
}

impl Ray {
    /// The canonical object of an id, if it can be had.
    pub(crate) fn available(&self, id: ObjectId) -> Option<ObjectId> {
        let end = self.index.trees.end(id);
        let object = self.objects.get(&end)?;
        (object.target == Target::Canonical && object.is_available()).then_some(end)
    }

    pub(crate) fn enqueue(&mut self, operation: OperationId, slot: Slot) {
        let entry = self.entry(operation).expect("a task is recorded before it is queued");
        let awaited = entry.awaited_once();
        let delayed = entry.not_before;
        let missing = awaited.iter().filter(|object| self.available(**object).is_none()).count();
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        let queue = &mut self.index.queue;
        for object in awaited {
            queue.users.insert((object, operation));
        }
        if let Some(time) = delayed {
            queue.delayed.insert((time, operation));
        }
        let waiting = Waiting { slot, missing, delayed };
        queue.waiting.insert(operation, waiting);
        if waiting.is_ready() {
            self.make_ready(operation, slot);
        }
    }

    pub(crate) fn dequeue(&mut self, operation: OperationId) {
        let Some(waiting) = self.index.queue.waiting.get(&operation).copied() else { return };
        if waiting.is_ready() {
            self.unmake_ready(operation, waiting.slot);
        }
        let awaited = self.entry(operation).map(Entry::awaited_once).unwrap_or_default();
        let queue = &mut self.index.queue;
        for object in awaited {
            queue.users.remove(&(object, operation));
        }
        if let Some(time) = waiting.delayed {
            queue.delayed.remove(&(time, operation));
        }
        queue.waiting.remove(&operation);
    }

    /// Does something that changes where the ids of one tree can be had, and keeps the sets right.
    pub(crate) fn shift(&mut self, members: &[ObjectId], change: impl FnOnce(&mut Self)) {
        if self.index.queue.users.is_empty() {
            return change(self);
        }
        let mut uses: BTreeMap<OperationId, u32> = BTreeMap::new();
        for member in members {
            for operation in self.users_of(*member) {
                *uses.entry(operation).or_default() += 1;
            }
        }
        if uses.is_empty() {
            return change(self);
        }
        let before = members.first().is_some_and(|member| self.available(*member).is_some());
        for operation in uses.keys() {
            let waiting = self.index.queue.waiting[operation];
            if waiting.is_ready() {
                self.unmake_ready(*operation, waiting.slot);
            }
        }
        change(self);
        let after = members.first().is_some_and(|member| self.available(*member).is_some());
        for (operation, uses) in uses {
            let waiting = self.index.queue.waiting.get_mut(&operation).expect("users are queued");
            match (before, after) {
                (false, true) => waiting.missing -= uses,
                (true, false) => waiting.missing += uses,
                (true, true) | (false, false) => {}
            }
            let waiting = *waiting;
            if waiting.is_ready() {
                self.make_ready(operation, waiting.slot);
            }
        }
    }

    /// Tasks whose time has come wait no longer for it.
    pub(crate) fn wake_delayed(&mut self, now: TimeMs) {
        while let Some((time, operation)) = self.index.queue.delayed.get_min().copied() {
            if time > now {
                break;
            }
            self.index.queue.delayed.remove(&(time, operation));
            self.entry_mut(operation).not_before = None;
            let waiting = self.index.queue.waiting.get_mut(&operation).expect("what is delayed is queued");
            waiting.delayed = None;
            let waiting = *waiting;
            if waiting.is_ready() {
                self.make_ready(operation, waiting.slot);
            }
        }
    }

    /// The queued tasks that wait for an object.
    pub(crate) fn users_of(&self, object: ObjectId) -> BTreeSet<OperationId> {
        let all = (object, OperationId(0))..=(object, OperationId(u64::MAX));
        self.index.queue.users.range(all).map(|(_, operation)| *operation).collect()
    }

    fn make_ready(&mut self, operation: OperationId, slot: Slot) {
        let (most, near) = self.distances(operation);
        let Demand { class, turn } = self.demands.of(operation);
        for (store, missing) in near {
            self.index.queue.near.insert((slot, class.clone(), store, turn, missing, operation));
        }
        self.index.queue.ready.insert((slot, class, turn, most, operation));
    }

    fn unmake_ready(&mut self, operation: OperationId, slot: Slot) {
        let (most, near) = self.distances(operation);
        let Demand { class, turn } = self.demands.of(operation);
        for (store, missing) in near {
            self.index.queue.near.remove(&(slot, class.clone(), store, turn, missing, operation));
        }
        self.index.queue.ready.remove(&(slot, class, turn, most, operation));
    }

    /// How many arguments a store lacks that has none, and what those lack that have some.
    fn distances(&self, operation: OperationId) -> (u32, BTreeMap<StoreId, u32>) {
        let mut present: BTreeMap<StoreId, u32> = BTreeMap::new();
        if self.algorithm == Algorithm::Naive {
            return (0, present);
        }
        let mut most = 0_u32;
        let entry = self.entry(operation).expect("queued tasks are recorded");
        for argument in entry.awaited() {
            most += 1;
            let object = self.objects.get(&self.index.trees.end(argument));
            for location in object.map(|object| object.locations.as_slice()).unwrap_or_default() {
                *present.entry(location.store).or_default() += 1;
            }
        }
        for count in present.values_mut() {
            *count = most - *count;
        }
        (most, present)
    }
}

impl Ray {
    /// All sets from scratch.
    pub(crate) fn derive_queue(&mut self) {
        self.index.queue = Queue::default();
        let queued: Vec<(OperationId, Slot)> = self
            .operations
            .iter()
            .filter_map(|(operation, found)| {
                let entry = found.entry().filter(|entry| entry.stage == Stage::Queued)?;
                Some((*operation, self.functions.slot(&entry.task.name)?))
            })
            .collect();
        for (operation, slot) in queued {
            self.enqueue(operation, slot);
        }
    }
}
