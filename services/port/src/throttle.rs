//! What happens often is told seldom.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Between two words to the operator about the same.
const WORD_EVERY: Duration = Duration::from_secs(10);

/// Counts what happens, and says when it is to be told.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    count: u64,
    told: Option<Instant>,
}

impl Throttle {
    /// It has happened once more. Gives how often in all, unless that was told a moment ago.
    pub(crate) fn note(&self) -> Option<u64> {
        let mut seen = self.0.lock();
        seen.count += 1;
        if seen.told.is_some_and(|told| told.elapsed() < WORD_EVERY) {
            return None;
        }
        seen.told = Some(Instant::now());
        Some(seen.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_happens_often_is_told_seldom_and_with_its_count() {
        let throttle = Throttle::default();
        assert_eq!([throttle.note(), throttle.note(), throttle.note()], [Some(1), None, None]);
        tokio::time::advance(WORD_EVERY).await;
        assert_eq!([throttle.note(), throttle.note()], [Some(4), None]);
    }
}
