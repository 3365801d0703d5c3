//! When the last backup was made that this node knows of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// That moment. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct LastBackup {
    /// Milliseconds since 1970; 0: never.
    at_ms: Arc<AtomicU64>,
}

impl LastBackup {
    /// One was made whole then.
    pub fn note(&self, at: SystemTime) {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.at_ms.fetch_max(u64::try_from(since.as_millis()).unwrap_or(0), Ordering::Relaxed);
    }

    /// How long ago that was.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        let at_ms = self.at_ms.load(Ordering::Relaxed);
        let at = UNIX_EPOCH.checked_add(Duration::from_millis(at_ms)).filter(|_| at_ms > 0)?;
        // The clock may have been set back.
        Some(SystemTime::now().duration_since(at).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_one_counts() {
        let last = LastBackup::default();
        assert_eq!(last.age(), None);
        let ago = |seconds| SystemTime::now() - Duration::from_secs(seconds);
        last.note(ago(100));
        last.note(ago(5_000));
        let age = last.age().expect("it is noted").as_secs();
        assert!((100..1_000).contains(&age), "{age}");
    }
}
