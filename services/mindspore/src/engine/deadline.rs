//! What the log's clock shows, as far as a leader may rely on it.

use tokio::time::Instant;
use tripod_state::ids::TimeMs;

/// A lower bound of the log's clock: the latest stamp that was seen, counted on since. The clock itself is the
/// replication's; apply compares the deadline with that.
#[derive(Debug, Default)]
pub(super) struct LogTime {
    seen: Option<(TimeMs, Instant)>,
}

impl LogTime {
    /// What the clock shows at least, after a look that showed `stamp`.
    pub(super) fn at_least(&mut self, stamp: TimeMs) -> TimeMs {
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
    async fn the_clock_shows_the_latest_stamp_and_what_has_passed_since() {
        let mut time = LogTime::default();
        assert_eq!(time.at_least(TimeMs(100)), TimeMs(100));
        tokio::time::advance(Duration::from_millis(49)).await;
        assert_eq!(time.at_least(TimeMs(100)), TimeMs(149));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(time.at_least(TimeMs(120)), TimeMs(150), "a stamp from before");
        assert_eq!(time.at_least(TimeMs(400)), TimeMs(400), "somebody else's command moved the log's time");
        tokio::time::advance(Duration::from_millis(7)).await;
        assert_eq!(time.at_least(TimeMs(400)), TimeMs(407));
    }
}
