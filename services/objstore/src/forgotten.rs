//! The ids of objects that were deallocated here.

use std::collections::BTreeMap;

use crate::ids::ObjectId;

/// Ranges that are remembered at most. Ids are given out in order and mostly freed in it, so that a live store has a
/// few ranges; this many are 3 MiB.
const RANGES_MAX: usize = 65_536;

/// A set of ids, kept as ranges.
///
/// When there are too many ranges the lowest is forgotten: a get of such an id waits instead of being refused,
/// which is what it does for an id that was never heard of.
#[derive(Debug, Default)]
pub(crate) struct Forgotten {
    /// First id to last id. Ranges neither overlap nor touch.
    ranges: BTreeMap<u64, u64>,
}

impl Forgotten {
    pub(crate) fn contains(&self, id: ObjectId) -> bool {
        self.ranges.range(..=id.0).next_back().is_some_and(|(_, last)| *last >= id.0)
    }

    pub(crate) fn insert(&mut self, id: ObjectId) {
        if self.contains(id) {
            return;
        }
        let (mut first, mut last) = (id.0, id.0);
        if let Some((below, below_last)) = self.ranges.range(..id.0).next_back()
            && below_last.checked_add(1) == Some(id.0)
        {
            first = *below;
        }
        if let Some(above_last) = id.0.checked_add(1).and_then(|above| self.ranges.remove(&above)) {
            last = above_last;
        }
        self.ranges.insert(first, last);
        if self.ranges.len() > RANGES_MAX {
            self.ranges.pop_first();
        }
    }

    /// The id begins a new life: a lost object that is made once more keeps its id.
    pub(crate) fn remove(&mut self, id: ObjectId) {
        let Some((first, last)) = self.ranges.range(..=id.0).next_back().map(|(f, l)| (*f, *l)) else {
            return;
        };
        if last < id.0 {
            return;
        }
        self.ranges.remove(&first);
        if first < id.0 {
            self.ranges.insert(first, id.0 - 1);
        }
        if last > id.0 {
            self.ranges.insert(id.0 + 1, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_set_of_its_ids(steps in proptest::collection::vec((any::<bool>(), 0_u64..40), 0..200)) {
            let (mut ours, mut plain) = (Forgotten::default(), BTreeSet::new());
            for (insert, id) in steps {
                if insert {
                    ours.insert(ObjectId(id));
                    plain.insert(id);
                } else {
                    ours.remove(ObjectId(id));
                    plain.remove(&id);
                }
                for id in 0..41 {
                    prop_assert_eq!(ours.contains(ObjectId(id)), plain.contains(&id));
                }
            }
        }
    }

    #[test]
    fn a_million_ids_in_any_order_of_neighbours_are_one_range() {
        let mut set = Forgotten::default();
        for id in (0..500_000).rev().chain(500_000..1_000_000) {
            set.insert(ObjectId(id));
        }
        assert_eq!(set.ranges.len(), 1);
    }

    #[test]
    fn the_largest_id_is_an_id_like_any_other() {
        let mut set = Forgotten::default();
        set.insert(ObjectId(u64::MAX));
        set.insert(ObjectId(u64::MAX - 1));
        assert!(set.contains(ObjectId(u64::MAX)));
        set.remove(ObjectId(u64::MAX));
        assert!(!set.contains(ObjectId(u64::MAX)) && set.contains(ObjectId(u64::MAX - 1)));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_newest_stay() {
        let mut set = Forgotten::default();
        let ids = RANGES_MAX as u64 + 10;
        for id in 0..ids {
            set.insert(ObjectId(id * 2));
        }
        assert_eq!(set.ranges.len(), RANGES_MAX);
        assert!(!set.contains(ObjectId(0)) && set.contains(ObjectId((ids - 1) * 2)));
    }
}
