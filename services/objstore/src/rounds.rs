//! How often fetching an object came to nothing for the same reason. Pure: no time, no network.

use std::collections::BTreeMap;

use crate::ids::ObjectId;

/// Objects that are remembered; of more, the oldest are forgotten and tried for longer.
const OBJECTS_MAX: usize = 4096;
/// Obstacles of one object that are remembered.
const OBSTACLES_MAX: usize = 16;

/// What kept an object from coming.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Obstacle {
    /// The source at that address could not be reached, or broke off.
    Source(String),
    /// There is no room here.
    NoSpace,
}

/// Rounds that ended without the object, by object and obstacle.
#[derive(Debug, Default)]
pub(crate) struct Rounds(BTreeMap<ObjectId, BTreeMap<Obstacle, u32>>);

impl Rounds {
    /// One more round ended at that obstacle; how many that were.
    pub(crate) fn failed(&mut self, id: ObjectId, obstacle: &Obstacle) -> u32 {
        let obstacles = self.0.entry(id).or_default();
        let rounds = obstacles.entry(obstacle.clone()).or_insert(0);
        *rounds += 1;
        let count = *rounds;
        if obstacles.len() > OBSTACLES_MAX {
            obstacles.retain(|other, _| other == obstacle);
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
    fn rounds_are_counted_for_each_object_and_obstacle_and_there_are_never_too_many() {
        let mut rounds = Rounds::default();
        let [a, b] = ["a", "b"].map(|address| Obstacle::Source(address.to_owned()));
        assert_eq!([1, 2].map(|_| rounds.failed(ObjectId(5), &a)), [1, 2]);
        assert_eq!((rounds.failed(ObjectId(5), &b), rounds.failed(ObjectId(6), &a)), (1, 1));
        assert_eq!(rounds.failed(ObjectId(5), &Obstacle::NoSpace), 1);
        assert_eq!(rounds.failed(ObjectId(5), &a), 3);
        rounds.forget(ObjectId(5));
        assert_eq!(rounds.failed(ObjectId(5), &a), 1);
        for source in 0..2 * OBSTACLES_MAX {
            rounds.failed(ObjectId(5), &Obstacle::Source(source.to_string()));
        }
        assert!(rounds.0[&ObjectId(5)].len() <= OBSTACLES_MAX);
        for object in 0..2 * OBJECTS_MAX as u64 {
            rounds.failed(ObjectId(object), &a);
        }
        assert_eq!(rounds.0.len(), OBJECTS_MAX);
    }
}
