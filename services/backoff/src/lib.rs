//! Pauses between attempts, each twice as long as the one before until the longest.
//!
//! Does not know: what is attempted, when to give up, or any clock but tokio's, so that a run with that clock paused
//! repeats. How long the pauses are, and why, is said where they are made.

use std::time::Duration;

/// The pauses of one loop. A constant of this type is where a loop begins: `let mut backoff = BACKOFF`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    next: Duration,
}

impl Backoff {
    /// Pauses from the first one to the longest.
    ///
    /// # Panics
    /// The first one is longer than the longest.
    #[must_use]
    pub const fn new(first: Duration, most: Duration) -> Self {
        assert!(first.as_nanos() <= most.as_nanos(), "the first pause is not the longest");
        Self { first, most, next: first }
    }

    /// The pause that is due, for who rests in another way than [`Self::rest`]. The one after it is twice as long.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.most);
        pause
    }

    /// Sleeps for the pause that is due. Whoever stops waiting has taken it all the same.
    pub async fn rest(&mut self) {
        tokio::time::sleep(self.pause()).await;
    }

    /// Something went well: the next pause is the first one again.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const BACKOFF: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(100));

    #[test]
    fn each_pause_is_twice_the_one_before_until_the_longest_and_the_first_again_after_a_success() {
        let mut backoff = BACKOFF;
        let mut pauses = |count: usize| -> Vec<u128> {
            let pauses = (0..count).map(|_| backoff.pause().as_millis()).collect();
            backoff.reset();
            pauses
        };
        assert_eq!(pauses(5), [20, 40, 80, 100, 100]);
        assert_eq!(pauses(2), [20, 40]);
    }

    #[tokio::test(start_paused = true)]
    async fn rests_take_as_long_as_the_pauses() {
        let (mut backoff, began) = (BACKOFF, Instant::now());
        for _ in 0..4 {
            backoff.rest().await;
        }
        assert_eq!(began.elapsed(), Duration::from_millis(20 + 40 + 80 + 100));
    }
}
