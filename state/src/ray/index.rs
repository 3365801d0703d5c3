//! What is derived from a scheduler's records, and kept beside them so that nothing is searched.

use imbl::{OrdMap, OrdSet};

use crate::ray::ids::{ObjectId, OperationId, StoreId, WorkerId};
use crate::ray::lineage::Lineage;
use crate::ray::peers::Tally;
use crate::ray::queue::Queue;
use crate::ray::tree::Trees;

/// Everything derived, in one place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) trees: Trees,
    pub(crate) queue: Queue,
    pub(crate) lineage: Lineage,
    pub(crate) locations: LocationIndex,
    /// Gets that wait, by their object and by their worker.
    pub(crate) getters: OrdSet<(ObjectId, OperationId)>,
    pub(crate) worker_gets: OrdSet<(WorkerId, OperationId)>,
    /// Tasks of which a worker reported the end, and results are still to come from that store.
    pub(crate) reported: OrdSet<(StoreId, OperationId)>,
    /// Objects that a process put and no store has had yet.
    pub(crate) unwritten: OrdSet<(WorkerId, ObjectId)>,
    /// How many tasks run.
    pub(crate) running: u64,
    pub(crate) workers_alive: u64,
    pub(crate) dead_workers: OrdSet<WorkerId>,
    pub(crate) dead_stores: OrdSet<StoreId>,
}

/// Where objects are, by store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LocationIndex {
    pub(crate) held: OrdSet<(StoreId, ObjectId)>,
    pub(crate) arriving: OrdSet<(StoreId, ObjectId)>,
    /// Source, object, destination.
    pub(crate) leaving: OrdSet<(StoreId, ObjectId, StoreId)>,
    tallies: OrdMap<StoreId, Tally>,
}

impl LocationIndex {
    pub(crate) fn tally(&self, store: StoreId) -> Tally {
        self.tallies.get(&store).copied().unwrap_or_default()
    }

    /// Changes a store's numbers. All zero is the same as nothing.
    pub(crate) fn count(&mut self, store: StoreId, change: impl FnOnce(&mut Tally)) {
        let mut tally = self.tally(store);
        change(&mut tally);
        if tally == Tally::default() {
            self.tallies.remove(&store);
        } else {
            self.tallies.insert(store, tally);
        }
    }

    pub(crate) fn arrived(&mut self, store: StoreId, object: ObjectId) {
        self.held.insert((store, object));
        self.count(store, |tally| tally.objects += 1);
    }

    pub(crate) fn left(&mut self, store: StoreId, object: ObjectId) {
        self.held.remove(&(store, object));
        self.count(store, |tally| tally.objects -= 1);
    }

    pub(crate) fn departs(&mut self, source: Option<StoreId>, object: ObjectId, store: StoreId) {
        self.arriving.insert((store, object));
        self.count(store, |tally| tally.incoming += 1);
        if let Some(source) = source {
            self.leaving.insert((source, object, store));
            self.count(source, |tally| tally.outgoing += 1);
        }
    }

    pub(crate) fn ends(&mut self, source: Option<StoreId>, object: ObjectId, store: StoreId) {
        self.arriving.remove(&(store, object));
        self.count(store, |tally| tally.incoming -= 1);
        if let Some(source) = source {
            self.leaving.remove(&(source, object, store));
            self.count(source, |tally| tally.outgoing -= 1);
        }
    }

    /// The objects that a store has.
    pub(crate) fn held_by(&self, store: StoreId) -> Vec<ObjectId> {
        let all = (store, ObjectId(0))..=(store, ObjectId(u64::MAX));
        self.held.range(all).map(|(_, object)| *object).collect()
    }

    /// The objects that are on their way to a store.
    pub(crate) fn arriving_at(&self, store: StoreId) -> Vec<ObjectId> {
        let all = (store, ObjectId(0))..=(store, ObjectId(u64::MAX));
        self.arriving.range(all).map(|(_, object)| *object).collect()
    }

    /// The stores that fetch an object from a store.
    pub(crate) fn fetching(&self, source: StoreId, object: ObjectId) -> Vec<StoreId> {
        let all = (source, object, StoreId(0))..=(source, object, StoreId(u64::MAX));
        self.leaving.range(all).map(|(_, _, to)| *to).collect()
    }

    /// The objects that are fetched from a store, and by whom.
    pub(crate) fn leaving_from(&self, store: StoreId) -> Vec<(ObjectId, StoreId)> {
        let (first, last) = (ObjectId(0), ObjectId(u64::MAX));
        let all = (store, first, StoreId(0))..=(store, last, StoreId(u64::MAX));
        self.leaving.range(all).map(|(_, object, to)| (*object, *to)).collect()
    }
}
