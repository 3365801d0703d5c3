//! The log's time, as far as a leader may rely on it.

use tokio::time::Instant;
use tripod_state::ids::TimeMs;

/// A lower bound of the log's clock: the latest stamp that was seen, counted on since. The clock itself is the
/// replication's; a task is tried again by the log's time, and apply compares with that.
#[derive(Debug, Default)]
pub(super) struct LogTime {
    seen: Option<(TimeMs, Instant)>,
}

impl LogTime {
    /// The time now, after a look that showed `stamp`.
    pub(super) fn now(&mut self, stamp: TimeMs) -> TimeMs {
        let now = Instant::now();
        let counted = self.seen.map(|(stamp, at)| {
            let passed = u64::try_from((now - at).as_millis()).unwrap_or(u64::MAX);
            TimeMs(stamp.0.saturating_add(passed))
        });
        match counted {
            Some(counted) if counted > stamp => counted,
            _ => {
                self.seen = Some((stamp, now));
                stamp
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn counts_on_from_the_latest_stamp_and_never_back() {
        let mut time = LogTime::default();
        assert_eq!(time.now(TimeMs(100)), TimeMs(100));
        tokio::time::advance(Duration::from_millis(50)).await;
        assert_eq!(time.now(TimeMs(100)), TimeMs(150));
        assert_eq!(time.now(TimeMs(400)), TimeMs(400));
        tokio::time::advance(Duration::from_millis(5)).await;
        assert_eq!(time.now(TimeMs(400)), TimeMs(405));
    }
}
