//! When this node's newest snapshot was made or received, as those see it who look now and then.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tripod_gateway::SnapshotCounts;

/// How many there were at the last look, and when that was another number. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SnapshotsSeen(Arc<Mutex<(u64, Option<Instant>)>>);

impl SnapshotsSeen {
    /// How long ago the newest one was seen for the first time, if there is one of this process.
    pub(super) fn age(&self, counts: &SnapshotCounts) -> Option<Duration> {
        let now = counts.built + counts.installed;
        let mut seen = self.0.lock();
        if seen.0 != now {
            *seen = (now, Some(Instant::now()));
        }
        Some(seen.1?.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_age_begins_again_with_each_snapshot() {
        let seen = SnapshotsSeen::default();
        let counts = |built, installed| SnapshotCounts { built, installed, ..SnapshotCounts::default() };
        assert_eq!(seen.age(&counts(0, 0)), None);
        assert_eq!(seen.age(&counts(1, 0)), Some(Duration::ZERO));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(seen.age(&counts(1, 0)), Some(Duration::from_secs(5)));
        assert_eq!(seen.age(&counts(1, 1)), Some(Duration::ZERO));
    }
}
