//! What stores say they hold, against what is believed of them.

use crate::ids::TimeMs;
use crate::ray::act::Act;
use crate::ray::command::Peer;
use crate::ray::ids::{ObjectId, StoreId};
use crate::ray::object::Target;
use crate::ray::order::{Order, Source};

impl Act<'_> {
    /// What a store has and nobody heard of is ready there, or is to be freed if nothing refers to it; what it had
    /// before it was asked and does not have is lost there. Whether anything changed.
    pub(crate) fn reconcile(&mut self, store: StoreId, holds: &[ObjectId], asked_ms: TimeMs) -> bool {
        if self.ray.living_store(store).is_err() {
            return false;
        }
        let mut changed = false;
        for id in holds.iter().copied() {
            match self.ray.objects.get(&id) {
                Some(object) if matches!(object.target, Target::To(_)) || object.is_at(store) => {}
                Some(_) => {
                    self.stored(id, store);
                    changed = true;
                }
                // An alias has no memory of its own; what meant another object went with it.
                None if id < self.ray.next.object
                    && self.ray.gone.get(&id).is_none_or(|meant| *meant == id) =>
                {
                    changed |= self.free(store, id);
                }
                None => {}
            }
        }
        let held = self.ray.index.places.held_by(store);
        for id in held.into_iter().filter(|id| holds.binary_search(id).is_err()) {
            if self.ray.placed_since(id, store).is_none_or(|since| since >= asked_ms) {
                continue;
            }
            self.ray.displace(id, store);
            changed = true;
            if self.ray.is_lost(id) {
                self.lose(id);
            }
        }
        changed
    }

    /// Somebody could not be reached where an object was to be fetched. Whether it was to be fetched at all.
    pub(crate) fn delivery_failed(&mut self, store: StoreId, object: ObjectId) -> bool {
        let Some(transit) = self.ray.objects.get(&object).and_then(|object| object.transit_to(store)) else {
            return false;
        };
        let but = match transit.source {
            Source::Store(source) => Some(source),
            Source::Coordinator => None,
        };
        self.fetch_elsewhere(object, store, but);
        true
    }

    /// Tells a store to free what nothing refers to, unless it is being told.
    fn free(&mut self, store: StoreId, object: ObjectId) -> bool {
        let order = Order::Deallocate { store, object };
        let told = self.ray.outbox.of(Peer::Store(store)).any(|known| *known == order);
        if !told {
            self.ray.outbox.push(order);
        }
        !told
    }
}
