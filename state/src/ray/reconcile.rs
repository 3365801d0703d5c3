//! What stores say they hold, against what is believed of them.

use crate::ids::TimeMs;
use crate::ray::act::Act;
use crate::ray::ids::{ObjectId, StoreId};
use crate::ray::object::Target;

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
                Some(object) if object.freed_ms.is_some_and(|freed| asked_ms <= freed) => {}
                // What it is being told to free it has no more soon.
                Some(_) if self.ray.outbox.is_freeing(store, id) => {}
                Some(_) => {
                    self.stored(id, store);
                    changed = true;
                }
                // An alias has no memory of its own; what meant another object went with it.
                None if id < self.ray.next.object
                    && self.ray.gone.get(&id).is_none_or(|meant| *meant == id) =>
                {
                    changed |= self.ray.outbox.free(store, id);
                }
                None => {}
            }
        }
        let held = self.ray.index.locations.held_by(store);
        for id in held.into_iter().filter(|id| holds.binary_search(id).is_err()) {
            if self.ray.placed_since(id, store).is_none_or(|since| since >= asked_ms) {
                continue;
            }
            self.missing(id, store);
            changed = true;
        }
        self.order_again(store, holds, asked_ms) || changed
    }

    /// A store has been told to fetch something, and does not have it still: it is told again. It may have forgotten
    /// the order, and one that fetches it takes no harm.
    fn order_again(&mut self, store: StoreId, holds: &[ObjectId], asked_ms: TimeMs) -> bool {
        let mut changed = false;
        for object in self.ray.index.locations.arriving_at(store) {
            let Some(transit) = self.ray.transit(object, store) else { continue };
            let told = self.ray.outbox.get(transit.order).is_none() && transit.since_ms < asked_ms;
            if told && holds.binary_search(&object).is_err() {
                self.fetch_elsewhere(object, store, None);
                changed = true;
            }
        }
        changed
    }
}
