//! The numbers of the batches that go to the leader by one connection.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// Those of one connection. Clones draw from the same.
#[derive(Debug, Clone, Default)]
pub(super) struct BatchNumbers(Arc<Mutex<Numbers>>);

#[derive(Debug, Default)]
struct Numbers {
    drawn: u64,
    /// Of batches that have no answer yet.
    open: BTreeSet<u64>,
}

/// That of one batch, until there is an answer: then this is to be dropped.
#[derive(Debug)]
pub(super) struct BatchNumber {
    numbers: BatchNumbers,
    /// Counted from 1.
    pub(super) number: u64,
    /// The oldest batch that had no answer when this was drawn: this one, or one before it.
    pub(super) oldest: u64,
}

impl BatchNumbers {
    /// The next one.
    pub(super) fn draw(&self) -> BatchNumber {
        let mut numbers = self.0.lock();
        numbers.drawn += 1;
        let number = numbers.drawn;
        numbers.open.insert(number);
        let oldest = numbers.open.first().copied().unwrap_or(number);
        BatchNumber { numbers: self.clone(), number, oldest }
    }
}

impl Drop for BatchNumber {
    fn drop(&mut self) {
        self.numbers.0.lock().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_knows_the_oldest_one_that_has_no_answer() {
        let numbers = BatchNumbers::default();
        let drawn = |batch: &BatchNumber| (batch.number, batch.oldest);
        let (first, second) = (numbers.draw(), numbers.draw());
        assert_eq!((drawn(&first), drawn(&second)), ((1, 1), (2, 1)));
        drop(second);
        let third = numbers.draw();
        assert_eq!(drawn(&third), (3, 1));
        drop(first);
        assert_eq!(drawn(&numbers.draw()), (4, 3));
        drop(third);
        assert_eq!(drawn(&numbers.draw()), (5, 5));
    }
}
