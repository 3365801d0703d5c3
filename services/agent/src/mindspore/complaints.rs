//! What the log is told of clients, and how often.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Lines in each period. What is beyond is counted, and told with the first line of the next.
const LINES_MAX: u64 = 20;
const PERIOD: Duration = Duration::from_secs(10);

/// Of all connections of an agent. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Complaints(Arc<Mutex<Period>>);

#[derive(Debug, Default)]
struct Period {
    began: Option<Instant>,
    complaints: u64,
}

impl Complaints {
    /// Tells what is wrong. No text of a client may be in it as it came.
    pub(super) fn tell(&self, what: &dyn Display) {
        match self.note() {
            None => {}
            Some(0) => tracing::warn!("{what}"),
            Some(untold) => tracing::warn!(untold, "{what}"),
        }
    }

    /// Counts one. Gives how many were not told lately, if this one is to be told.
    fn note(&self) -> Option<u64> {
        let mut period = self.0.lock();
        let now = Instant::now();
        let mut untold = 0;
        if period.began.is_none_or(|began| now - began >= PERIOD) {
            untold = period.complaints.saturating_sub(LINES_MAX);
            *period = Period { began: Some(now), complaints: 0 };
        }
        period.complaints += 1;
        (period.complaints <= LINES_MAX).then_some(untold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn beyond_some_lines_in_a_period_they_are_counted_and_told_with_the_next() {
        let complaints = Complaints::default();
        let told = (0..LINES_MAX + 3).filter(|_| complaints.note().is_some()).count() as u64;
        assert_eq!(told, LINES_MAX);
        tokio::time::advance(PERIOD).await;
        assert_eq!((complaints.note(), complaints.note()), (Some(3), Some(0)));
    }
}
