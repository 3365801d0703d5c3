//! How often fetching an object from the same place came to nothing. Pure: no time, no network.

use std::collections::BTreeMap;

use crate::ids::ObjectId;

/// Objects that are remembered; of more, the oldest are forgotten and tried for longer.
const OBJECTS_MAX: usize = 4096;
/// Places of one object that are remembered.
const PLACES_MAX: usize = 16;

/// Rounds that ended without the object, by object and place.
#[derive(Debug, Default)]
pub(crate) struct Rounds(BTreeMap<ObjectId, BTreeMap<String, u32>>);

impl Rounds {
    /// One more round ended at that place; how many that were.
    pub(crate) fn failed(&mut self, id: ObjectId, address: &str) -> u32 {
        let places = self.0.entry(id).or_default();
        let rounds = places.entry(address.to_owned()).or_insert(0);
        *rounds += 1;
        let count = *rounds;
        if places.len() > PLACES_MAX {
            places.retain(|place, _| place == address);
        }
        if self.0.len() > OBJECTS_MAX {
            self.0.pop_first();
        }
        count
    }

    /// The object came, is not wanted any more, or those who wait for it were told.
    pub(crate) fn forget(&mut self, id: ObjectId) {
        self.0.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_counted_for_each_object_and_place_and_there_are_never_too_many() {
        let mut rounds = Rounds::default();
        assert_eq!([1, 2].map(|_| rounds.failed(ObjectId(5), "a")), [1, 2]);
        assert_eq!((rounds.failed(ObjectId(5), "b"), rounds.failed(ObjectId(6), "a")), (1, 1));
        assert_eq!(rounds.failed(ObjectId(5), "a"), 3);
        rounds.forget(ObjectId(5));
        assert_eq!(rounds.failed(ObjectId(5), "a"), 1);
        for place in 0..2 * PLACES_MAX {
            rounds.failed(ObjectId(5), &place.to_string());
        }
        assert!(rounds.0[&ObjectId(5)].len() <= PLACES_MAX);
        for object in 0..2 * OBJECTS_MAX as u64 {
            rounds.failed(ObjectId(object), "a");
        }
        assert_eq!(rounds.0.len(), OBJECTS_MAX);
    }
}
