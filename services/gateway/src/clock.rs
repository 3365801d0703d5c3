//! The wall clock, as an argument: tests hand in another one.

use std::sync::Arc;
use std::time::Duration;

use tripod_state::ids::{DurationMs, TimeMs};

/// Tells the time of day. Only grace periods are judged by it; every timer runs on a monotonic clock.
pub type Clock = Arc<dyn Fn() -> TimeMs + Send + Sync>;

/// The clock by which a leader stamps the log, which no jump of the machine's clock moves: grace periods of
/// the state are compared with it.
pub(crate) fn wall() -> TimeMs {
    tripod_raft::time_of_day()
}

/// Whole milliseconds, at most what fits.
pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// So many hundredths of a length.
pub(crate) fn percent(length: DurationMs, hundredths: u64) -> DurationMs {
    DurationMs(length.0.saturating_mul(hundredths) / 100)
}
