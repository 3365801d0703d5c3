//! Which finished tasks are remembered because they could make an object again, and which operations only for the
//! computation graph.
//!
//! A task *belongs* to the lineage while it is not finished, and then for as long as one of its results is referred
//! to, or is an argument of another task that belongs. An argument's maker is an older operation than its user, so
//! the lineage has no circles.

use imbl::{OrdMap, OrdSet};

use crate::memory::{of_map, of_set};
use crate::ray::Ray;
use crate::ray::ids::{ObjectId, OperationId};
use crate::ray::limits::{FINISHED_KEPT, LINEAGE_BYTES_MAX};
use crate::ray::operation::Entry;

/// Derived from the operations and from which objects there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lineage {
    /// How many tasks that belong have the object among their arguments.
    pins: OrdMap<ObjectId, u64>,
    /// Who makes what is pinned and was deallocated.
    makers: OrdMap<ObjectId, OperationId>,
    /// Finished tasks that belong.
    finished: OrdSet<OperationId>,
    /// Finished operations that do not.
    shown: OrdSet<OperationId>,
    /// Bytes of the finished tasks that belong.
    bytes: u64,
}

impl Lineage {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What it takes itself, without the tasks, roughly.
    pub(crate) fn held(&self) -> u64 {
        let maps = of_map::<ObjectId, u64>(self.pins.len())
            .saturating_add(of_map::<ObjectId, OperationId>(self.makers.len()));
        let sets = of_set::<OperationId>(self.finished.len())
            .saturating_add(of_set::<OperationId>(self.shown.len()));
        maps.saturating_add(sets)
    }

    /// Who could make an object that was deallocated.
    pub(crate) fn maker(&self, object: ObjectId) -> Option<OperationId> {
        self.makers.get(&object).copied()
    }
}

impl Ray {
    /// A task begins to belong.
    pub(crate) fn lineage_enter(&mut self, operation: OperationId) {
        let mentioned = self.entry(operation).map(Entry::mentioned_once).unwrap_or_default();
        for object in mentioned {
            *self.index.lineage.pins.entry(object).or_insert(0) += 1;
        }
    }

    /// A task is finished.
    pub(crate) fn lineage_finish(&mut self, operation: OperationId) {
        let Some(entry) = self.entry(operation) else { return };
        if self.needs(entry) {
            let bytes = entry.bytes();
            self.index.lineage.finished.insert(operation);
            self.index.lineage.bytes += bytes;
            while self.index.lineage.bytes > LINEAGE_BYTES_MAX {
                let Some(oldest) = self.index.lineage.finished.get_min().copied() else { break };
                self.entry_mut(oldest).evicted = true;
                self.lineage_leave(oldest);
            }
        } else {
            self.lineage_leave(operation);
        }
    }

    /// A finished task is queued again. What it did since counts anew.
    pub(crate) fn lineage_again(&mut self, operation: OperationId) {
        let bytes = self.entry(operation).map_or(0, Entry::bytes);
        if self.index.lineage.finished.remove(&operation).is_some() {
            self.index.lineage.bytes -= bytes;
        }
    }

    /// Nothing refers to an object any more.
    pub(crate) fn lineage_gone(&mut self, object: ObjectId, maker: OperationId) {
        if self.index.lineage.pins.contains_key(&object) {
            let belongs = self.entry(maker).is_some_and(|entry| !entry.evicted);
            if belongs {
                self.index.lineage.makers.insert(object, maker);
            }
            return;
        }
        self.lineage_judge(maker);
    }

    /// An object that was deallocated is there again.
    pub(crate) fn lineage_back(&mut self, object: ObjectId) {
        self.index.lineage.makers.remove(&object);
    }

    /// An operation that is no task is finished.
    pub(crate) fn show(&mut self, operation: OperationId) {
        self.index.lineage.shown.insert(operation);
        while self.index.lineage.shown.len() > FINISHED_KEPT {
            let Some(oldest) = self.index.lineage.shown.remove_min() else { break };
            self.operations.remove(&oldest);
            self.demands.forget(oldest);
        }
    }

    /// Whether a result of the task may have to be made again.
    fn needs(&self, entry: &Entry) -> bool {
        let pins = &self.index.lineage.pins;
        entry.results.iter().any(|result| self.objects.contains_key(result) || pins.contains_key(result))
    }

    fn lineage_judge(&mut self, operation: OperationId) {
        if !self.index.lineage.finished.contains(&operation) {
            return;
        }
        if self.entry(operation).is_some_and(|entry| !self.needs(entry)) {
            self.lineage_leave(operation);
        }
    }

    /// A finished task does not belong any more, nor do those that only it needed.
    fn lineage_leave(&mut self, operation: OperationId) {
        let mut leaving = vec![operation];
        while let Some(operation) = leaving.pop() {
            let Some(entry) = self.entry(operation) else { continue };
            let (bytes, mentioned, results) = (entry.bytes(), entry.mentioned_once(), entry.results.clone());
            let lineage = &mut self.index.lineage;
            if lineage.finished.remove(&operation).is_some() {
                lineage.bytes -= bytes;
            }
            for result in results {
                lineage.makers.remove(&result);
            }
            for object in mentioned {
                let Some(pins) = self.index.lineage.pins.get_mut(&object) else { continue };
                *pins -= 1;
                if *pins > 0 {
                    continue;
                }
                self.index.lineage.pins.remove(&object);
                let Some(maker) = self.index.lineage.makers.remove(&object) else { continue };
                let finished = self.index.lineage.finished.contains(&maker);
                if finished && self.entry(maker).is_some_and(|entry| !self.needs(entry)) {
                    leaving.push(maker);
                }
            }
            self.show(operation);
        }
    }

    /// Everything from scratch.
    pub(crate) fn derive_lineage(&mut self) {
        self.index.lineage = Lineage::default();
        let operations: Vec<OperationId> = self.operations.keys().rev().copied().collect();
        for operation in operations {
            let found = &self.operations[&operation];
            let Some(entry) = found.entry() else {
                if found.is_finished() {
                    self.index.lineage.shown.insert(operation);
                }
                continue;
            };
            let belongs = !entry.is_finished() || (!entry.evicted && self.needs(entry));
            if !belongs {
                self.index.lineage.shown.insert(operation);
                continue;
            }
            let (finished, bytes) = (entry.is_finished(), entry.bytes());
            let gone: Vec<ObjectId> =
                entry.results.iter().copied().filter(|result| !self.objects.contains_key(result)).collect();
            for result in gone {
                if self.index.lineage.pins.contains_key(&result) {
                    self.index.lineage.makers.insert(result, operation);
                }
            }
            if finished {
                self.index.lineage.finished.insert(operation);
                self.index.lineage.bytes += bytes;
            }
            self.lineage_enter(operation);
        }
    }
}
