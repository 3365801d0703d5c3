//! Which worker can execute which function.

use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

use crate::memory::{Weigh, Weighed, all_inside, of_map, of_set, of_text};
use crate::ray::ids::{FunctionName, WorkerId};
use crate::snapshot::unpresumed;

/// A function's number: what the queues are sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Slot(pub(crate) u64);

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Function {
    pub(crate) name: FunctionName,
    /// How many results it has, as the last worker said.
    pub(crate) results: u64,
    #[serde(deserialize_with = "unpresumed::set")]
    pub(crate) workers: OrdSet<WorkerId>,
}

/// All functions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Functions {
    pub(crate) next: Slot,
    table: Weighed<Slot, Function>,
    names: OrdMap<FunctionName, Slot>,
}

impl Functions {
    pub(crate) fn slot(&self, name: &FunctionName) -> Option<Slot> {
        self.names.get(name).copied()
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&Function> {
        self.table.get(&slot)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&Slot, &Function)> {
        self.table.iter()
    }

    /// By name.
    pub(crate) fn sorted(&self) -> impl Iterator<Item = &Function> {
        self.names.values().filter_map(|slot| self.table.get(slot))
    }

    /// What they take, roughly.
    pub(crate) fn bytes(&self) -> u64 {
        self.table.bytes().saturating_add(of_map::<FunctionName, Slot>(self.names.len()))
    }

    /// The same from all of them.
    pub(crate) fn recounted(&self) -> u64 {
        self.table.recounted().saturating_add(of_map::<FunctionName, Slot>(self.names.len()))
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn register(&mut self, name: FunctionName, results: u64, worker: WorkerId) {
        let slot = self.slot(&name).unwrap_or_else(|| {
            let slot = self.next;
            self.next.0 += 1;
            self.restore(slot, Function { name, results, workers: OrdSet::new() });
            slot
        });
        let mut function = self.table.edit(&slot).expect("every name has its function");
        function.results = results;
        function.workers.insert(worker);
    }

    /// The worker executes nothing any more. A function that is left without workers stays: its tasks wait for
    /// the next worker.
    pub(crate) fn leave(&mut self, worker: WorkerId) {
        let slots: Vec<Slot> = self
            .table
            .iter()
            .filter(|(_, known)| known.workers.contains(&worker))
            .map(|(slot, _)| *slot)
            .collect();
        for slot in slots {
            let mut function = self.table.edit(&slot).expect("it was just found");
            function.workers.remove(&worker);
        }
    }

    /// Forgets all functions.
    pub(crate) fn clear(&mut self) {
        *self = Self { next: self.next, ..Self::default() };
    }

    pub(crate) fn restore(&mut self, slot: Slot, function: Function) {
        self.names.insert(function.name.clone(), slot);
        self.table.insert(slot, function);
    }
}

all_inside!(Slot);

impl Weigh for Function {
    fn outside(&self) -> u64 {
        of_text(self.name.0.len()).saturating_add(of_set::<WorkerId>(self.workers.len()))
    }
}
