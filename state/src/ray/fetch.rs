//! Objects that do not come to the stores that were told to fetch them.

use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::answer::Answer;
use crate::ray::command::FetchFailure;
use crate::ray::delivery::store_of;
use crate::ray::ids::{ObjectId, StoreId};
use crate::ray::object::Transit;
use crate::ray::refusal::Refusal;

impl Act<'_> {
    /// A store gave an object up. Whoever waits for it there asked once and asks no more, so it is fetched once more,
    /// or made again; unless it can never come there.
    pub(crate) fn fetch_failed(
        &mut self,
        object: ObjectId,
        store: StoreId,
        why: &FetchFailure,
    ) -> Result<Answer, Refusal> {
        self.ray.living_store(store)?;
        let Some(transit) = self.ray.transit(object, store) else { return Ok(Answer::Done) };
        match why {
            FetchFailure::Told => {
                // Who waits for another name of it is told by that name.
                self.notify(object, store);
                self.end_delivery(object, store);
                self.drop_one(object);
            }
            FetchFailure::Absent { source } => match self.ray.named_source(object, &transit, source) {
                Some(source) => self.missing(object, source),
                None => self.fetch_elsewhere(object, store, store_of(transit.source)),
            },
            FetchFailure::Unfinished => self.fetch_elsewhere(object, store, store_of(transit.source)),
        }
        Ok(Answer::Done)
    }

    /// A store did not take the order to fetch an object. Whether it was to fetch it at all.
    pub(crate) fn delivery_failed(&mut self, store: StoreId, object: ObjectId) -> bool {
        let Some(transit) = self.ray.transit(object, store) else { return false };
        self.fetch_elsewhere(object, store, store_of(transit.source));
        true
    }

    /// A store does not have an object that it said it had. Somebody there may wait for it, and asks no more.
    pub(crate) fn missing(&mut self, id: ObjectId, store: StoreId) {
        self.ray.displace(id, store);
        if self.ray.is_lost(id) {
            self.ray.wanted.insert((id, store));
            self.lose(id);
        } else {
            for to in self.ray.index.locations.fetching(store, id) {
                self.fetch_elsewhere(id, to, Some(store));
            }
            self.deliver(id, store);
        }
    }
}

impl Ray {
    pub(crate) fn transit(&self, object: ObjectId, store: StoreId) -> Option<Transit> {
        self.objects.get(&object)?.transit_to(store).copied()
    }

    /// The store of that address, if an object is to be fetched from there and was believed to be there all the time
    /// since that was ordered. Word of an earlier order says nothing about a copy that was made since.
    fn named_source(&self, object: ObjectId, transit: &Transit, address: &str) -> Option<StoreId> {
        let source = store_of(transit.source)?;
        let same = self.stores.get(&source).is_some_and(|store| store.address == address);
        let before = self.placed_since(object, source).is_some_and(|since| since <= transit.since_ms);
        (same && before).then_some(source)
    }
}
