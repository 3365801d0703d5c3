//! Places of calls in a session.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The places that a session has given out.
#[derive(Debug, Default)]
pub(super) struct Numbers(Mutex<Given>);

#[derive(Debug, Default)]
struct Given {
    last: u64,
    unanswered: BTreeSet<u64>,
}

/// The place of one call, until it is answered or given up. A call without an effect has none.
#[derive(Debug)]
pub(super) struct Place<'a> {
    numbers: &'a Numbers,
    /// 0: none.
    sequence: u64,
}

impl Numbers {
    /// The next place.
    pub(super) fn begin(&self) -> Place<'_> {
        let mut given = self.given();
        given.last += 1;
        let sequence = given.last;
        given.unanswered.insert(sequence);
        Place { numbers: self, sequence }
    }

    /// None.
    pub(super) fn none(&self) -> Place<'_> {
        Place { numbers: self, sequence: 0 }
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The place below which every call was answered, as of now.
    pub(super) fn acknowledged_below(&self) -> u64 {
        if self.sequence == 0 {
            return 0;
        }
        self.numbers.given().unanswered.first().copied().unwrap_or(self.sequence)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.numbers.given().unanswered.remove(&self.sequence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_waits_keeps_the_places_behind_it_unacknowledged() {
        let numbers = Numbers::default();
        let (first, second) = (numbers.begin(), numbers.begin());
        assert_eq!((first.sequence(), second.sequence()), (1, 2));
        assert_eq!(second.acknowledged_below(), 1);
        drop(first);
        assert_eq!(second.acknowledged_below(), 2);
        drop(second);
        let third = numbers.begin();
        assert_eq!((third.sequence(), third.acknowledged_below()), (3, 3));
    }

    #[test]
    fn a_call_without_a_place_takes_none() {
        let numbers = Numbers::default();
        let none = numbers.none();
        assert_eq!((none.sequence(), none.acknowledged_below()), (0, 0));
        drop(none);
        assert_eq!(numbers.begin().sequence(), 1);
    }
}
