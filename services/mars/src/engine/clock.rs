//! What the log's clock shows, as far as a leader may rely on it.

use tokio::time::Instant;
use tripod_state::ids::TimeMs;

/// A lower bound of the log's clock: the latest stamp that was seen, counted on since. Nothing moves the log's time in a job
/// in which nothing happens.
#[derive(Debug, Default)]
pub(super) struct LogClock {
    seen: Option<(TimeMs, Instant)>,
}

impl LogClock {
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
    async fn the_clock_goes_on_while_nothing_is_stamped_and_never_back() {
        let mut clock = LogClock::default();
        assert_eq!(clock.at_least(TimeMs(100)), TimeMs(100));
        tokio::time::advance(Duration::from_millis(50)).await;
        assert_eq!(clock.at_least(TimeMs(100)), TimeMs(150));
        assert_eq!(clock.at_least(TimeMs(120)), TimeMs(150), "a stamp from before");
        assert_eq!(clock.at_least(TimeMs(400)), TimeMs(400));
    }
}
