//! The wall clock, as an argument.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tripod_state::ids::TimeMs;

/// Tells the time of day. A leader stamps its entries with it; nothing else here is judged by it.
pub type WallClock = Arc<dyn Fn() -> TimeMs + Send + Sync>;

/// This machine's clock. A clock before the epoch stamps zero; the state never lets time run backwards.
pub(super) fn of_this_machine() -> TimeMs {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    TimeMs(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
