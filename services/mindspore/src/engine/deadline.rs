//! Until when a cluster must be complete, as far as a leader may rely on it.

use tokio::time::Instant;
use tripod_state::ids::TimeMs;

/// A lower bound of the log's clock: the latest stamp that was seen, counted on since. The clock itself is the
/// replication's; apply compares the deadline with that.
#[derive(Debug, Default)]
pub(super) struct LogTime {
    seen: Option<(TimeMs, Instant)>,
}

impl LogTime {
    /// Whether a deadline has passed, after a look that showed `stamp`.
    pub(super) fn has_passed(&mut self, deadline: TimeMs, stamp: TimeMs) -> bool {
        let now = Instant::now();
        let counted = self.seen.map(|(stamp, at)| {
            let passed = u64::try_from((now - at).as_millis()).unwrap_or(u64::MAX);
            TimeMs(stamp.0.saturating_add(passed))
        });
        match counted {
            Some(counted) if counted > stamp => deadline <= counted,
            _ => {
                self.seen = Some((stamp, now));
                deadline <= stamp
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deadline_passes_by_stamps_and_by_what_has_passed_since_the_latest() {
        let mut time = LogTime::default();
        assert!(!time.has_passed(TimeMs(150), TimeMs(100)));
        tokio::time::advance(Duration::from_millis(49)).await;
        assert!(!time.has_passed(TimeMs(150), TimeMs(100)));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(time.has_passed(TimeMs(150), TimeMs(100)));
        assert!(time.has_passed(TimeMs(400), TimeMs(400)), "somebody else's command moved the log's time");
    }
}
