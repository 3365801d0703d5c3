//! How often leaders came, as this node saw it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often leaders came, as this node saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ElectionCounts {
    /// How often this node stood for election.
    pub stood: u64,
    /// How often it learned of a leader that was not the one before.
    pub leader_changes: u64,
}

/// Counts elections. Clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct ElectionTally {
    counts: Arc<(AtomicU64, AtomicU64)>,
}

impl ElectionTally {
    pub(crate) fn stood(&self) {
        self.counts.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leader_changed(&self) {
        self.counts.1.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> ElectionCounts {
        let (stood, leader_changes) = &*self.counts;
        ElectionCounts {
            stood: stood.load(Ordering::Relaxed),
            leader_changes: leader_changes.load(Ordering::Relaxed),
        }
    }
}
