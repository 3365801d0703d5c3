//! Lines of the log that a caller could cause without an end.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Between two lines about the same.
const PAUSE: Duration = Duration::from_secs(10);

/// Tells when the next line is due. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seldom {
    last: Arc<Mutex<Option<Instant>>>,
}

impl Seldom {
    /// Whether nothing was said for so long that something may be said now.
    pub(crate) fn is_due(&self) -> bool {
        let (mut last, now) = (self.last.lock(), Instant::now());
        let due = last.is_none_or(|last| now.duration_since(last) >= PAUSE);
        if due {
            *last = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_one_line_in_ten_seconds() {
        let seldom = Seldom::default();
        assert!(seldom.is_due());
        assert!((0..1_000).all(|_| !seldom.clone().is_due()));
        tokio::time::sleep(PAUSE).await;
        assert!(seldom.is_due() && !seldom.is_due());
    }
}
