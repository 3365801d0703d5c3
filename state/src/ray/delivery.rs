//! Bringing objects to stores, and telling stores what ids mean.

use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::ids::{ObjectId, StoreId};
use crate::ray::object::{Object, Target, Transit};
use crate::ray::order::{Order, Source};

impl Act<'_> {
    /// Sees to it that a store will have what an id means, which can be had or failed.
    pub(crate) fn bring(&mut self, id: ObjectId, store: StoreId) {
        if self.ray.stores.get(&store).is_none_or(|store| !store.is_alive()) {
            return;
        }
        let end = self.ray.index.trees.end(id);
        if id != end {
            if self.ray.objects[&end].is_at(store) {
                self.ray.outbox.push(Order::NotifyAlias { store, alias: id, canonical: end });
            } else {
                self.ray.notices.insert((end, store, id));
            }
        }
        self.deliver(end, store);
    }

    /// Has an object fetched, unless the store has it or fetches it already. The delivery owns a reference until
    /// the store has the object.
    pub(crate) fn deliver(&mut self, end: ObjectId, store: StoreId) {
        let object = &self.ray.objects[&end];
        if object.is_at(store) || object.transit_to(store).is_some() {
            return;
        }
        let Some(source) = self.ray.source(object, None) else { return };
        self.begin_delivery(end, store, source);
        self.ray.grow(end);
    }

    /// Orders a delivery whose reference is counted.
    pub(crate) fn begin_delivery(&mut self, end: ObjectId, store: StoreId, from: Source) {
        let order = self.ray.outbox.push(Order::Deliver { store, from, object: end });
        self.ray.index.locations.departs(store_of(from), end, store);
        let since_ms = self.now;
        self.ray.object_mut(end).set_transit(Transit { store, source: from, order, since_ms });
    }

    /// Takes a delivery back without its reference.
    pub(crate) fn end_delivery(&mut self, end: ObjectId, store: StoreId) -> bool {
        let Some(transit) = self.ray.object_mut(end).remove_transit(store) else { return false };
        self.ray.index.locations.ends(store_of(transit.source), end, store);
        self.ray.outbox.remove(transit.order);
        true
    }

    /// Takes all deliveries of an object back. They are begun anew when it can be had again: whoever waits at those
    /// stores asked once and asks no more.
    pub(crate) fn end_deliveries(&mut self, end: ObjectId) {
        let stores: Vec<StoreId> =
            self.ray.objects[&end].transits.iter().map(|transit| transit.store).collect();
        for store in stores {
            self.end_delivery(end, store);
            self.ray.wanted.insert((end, store));
            self.drop_one(end);
        }
    }

    /// Begins the deliveries that were taken back.
    pub(crate) fn redeliver(&mut self, end: ObjectId) {
        if self.ray.wanted.is_empty() {
            return;
        }
        let all = (end, StoreId(0))..=(end, StoreId(u64::MAX));
        let stores: Vec<StoreId> = self.ray.wanted.range(all).map(|(_, store)| *store).collect();
        for store in stores {
            self.ray.wanted.remove(&(end, store));
            self.deliver(end, store);
        }
    }

    /// A store has an object now: tells it which ids mean that, if it is to know.
    pub(crate) fn notify(&mut self, end: ObjectId, store: StoreId) {
        let all = (end, store, ObjectId(0))..=(end, store, ObjectId(u64::MAX));
        let due: Vec<(ObjectId, StoreId, ObjectId)> = self.ray.notices.range(all).copied().collect();
        for notice in due {
            self.ray.notices.remove(&notice);
            self.ray.outbox.push(Order::NotifyAlias { store, alias: notice.2, canonical: end });
        }
    }
}

impl Ray {
    /// Where an object is best fetched from: the store that has the fewest others to serve, of equal ones the one
    /// with the lowest id. `but`: only if there is no other.
    pub(crate) fn source(&self, object: &Object, but: Option<StoreId>) -> Option<Source> {
        if object.failure.is_some() {
            return Some(Source::Coordinator);
        }
        let stores = object.locations.iter().map(|location| location.store);
        let burden =
            |store: &StoreId| (but == Some(*store), self.index.locations.tally(*store).outgoing, *store);
        stores.min_by_key(burden).map(Source::Store)
    }

    /// Whether an id can be brought to a store: what it means is there, or is known to be lost for good.
    pub(crate) fn can_bring(&self, id: ObjectId) -> bool {
        let object = self.objects.get(&self.index.trees.end(id));
        object.is_some_and(|object| {
            object.target == Target::Canonical && (object.failure.is_some() || !object.locations.is_empty())
        })
    }

    /// Forgets who was to be told what an object is called, and who was to have it.
    pub(crate) fn forget_notices(&mut self, end: ObjectId) {
        if !self.wanted.is_empty() {
            let all = (end, StoreId(0))..=(end, StoreId(u64::MAX));
            let wanted: Vec<(ObjectId, StoreId)> = self.wanted.range(all).copied().collect();
            for want in wanted {
                self.wanted.remove(&want);
            }
        }
        if self.notices.is_empty() {
            return;
        }
        let (first, last) = (ObjectId(0), ObjectId(u64::MAX));
        let all = (end, StoreId(0), first)..=(end, StoreId(u64::MAX), last);
        let of_object: Vec<(ObjectId, StoreId, ObjectId)> = self.notices.range(all).copied().collect();
        for notice in of_object {
            self.notices.remove(&notice);
        }
    }
}

/// The store of a source, if it is one.
pub(crate) fn store_of(source: Source) -> Option<StoreId> {
    match source {
        Source::Store(store) => Some(store),
        Source::Coordinator => None,
    }
}
