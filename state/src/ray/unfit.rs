//! Objects that cannot come to certain stores, as far as a planner has heard of it: they are larger than the store, or
//! the store does not reach the places where they are.
//!
//! Nothing of this is in the state: sizes are known to stores only, and who reaches whom changes. A planner that has
//! forgotten it hears of it again when the next task fails to begin.

use std::collections::BTreeSet;

use crate::ray::Ray;
use crate::ray::command::Run;
use crate::ray::ids::{ObjectId, OperationId, StoreId};
use crate::ray::operation::{Entry, Stage};

/// Pairs of an object and a store that it cannot come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unfit(BTreeSet<(ObjectId, StoreId)>);

impl FromIterator<(ObjectId, StoreId)> for Unfit {
    fn from_iter<I: IntoIterator<Item = (ObjectId, StoreId)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl Ray {
    /// Whether a worker that has this attempt of a task should give it back if an argument cannot come to its store:
    /// workers of another store may be able to execute it.
    #[must_use]
    pub fn may_go_elsewhere(&self, run: Run, unfit: &Unfit) -> bool {
        let Some(entry) = self.entry(run.operation).filter(|entry| entry.is_run(run)) else { return false };
        let Stage::Running { worker, .. } = entry.stage else { return false };
        let Some(store) = self.workers.get(&worker).map(|worker| worker.store) else { return false };
        if entry.awaited().next().is_none() {
            return false;
        }
        if self.is_unfit(entry, store, unfit) {
            return self.fits_elsewhere(run.operation, entry, (store, unfit));
        }
        // Nothing is known against this store. What stands against the others shows when it comes back: going through
        // all workers for every task would cost too much.
        let others = self.stores.iter().filter(|(id, other)| **id != store && other.is_alive());
        others.into_iter().any(|(id, _)| self.index.locations.tally(*id).workers > 0)
    }

    /// Whether a queued task is not to be given to workers of a store, since an argument cannot come there, and there
    /// are others who could execute it. If there are not, it fails there, with a text that says why.
    pub(crate) fn is_for_others(&self, operation: OperationId, store: StoreId, unfit: &Unfit) -> bool {
        if unfit.0.is_empty() {
            return false;
        }
        let Some(entry) = self.entry(operation) else { return false };
        self.is_unfit(entry, store, unfit) && self.fits_elsewhere(operation, entry, (store, unfit))
    }

    fn is_unfit(&self, entry: &Entry, store: StoreId, unfit: &Unfit) -> bool {
        !unfit.0.is_empty()
            && entry.awaited().any(|argument| {
                let end = self.index.trees.end(argument);
                // It may have come there since.
                let is_there = || self.objects.get(&end).is_some_and(|object| object.is_at(store));
                unfit.0.contains(&(end, store)) && !is_there()
            })
    }

    /// Functions know living workers only.
    fn fits_elsewhere(
        &self,
        operation: OperationId,
        entry: &Entry,
        (store, unfit): (StoreId, &Unfit),
    ) -> bool {
        let slot = self.functions.slot(&entry.task.name);
        let Some(function) = slot.and_then(|slot| self.functions.get(slot)) else { return false };
        let able = function.workers.iter().filter(|worker| self.has_needed(operation, **worker));
        let stores = able.filter_map(|worker| Some(self.workers.get(worker)?.store));
        stores.into_iter().any(|other| other != store && !self.is_unfit(entry, other, unfit))
    }
}
