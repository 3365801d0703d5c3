//! How often snapshots were made, sent and received.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Snapshots of this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnapshotCounts {
    /// Written of its own state.
    pub built: u64,
    /// Sent to other nodes, whole.
    pub sent: u64,
    /// Received from a leader, and put in the place of its own state.
    pub installed: u64,
}

/// Counts snapshots. Clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct SnapshotTally {
    counts: Arc<[AtomicU64; 3]>,
}

impl SnapshotTally {
    pub(crate) fn built(&self) {
        self.counts[0].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self) {
        self.counts[1].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn installed(&self) {
        self.counts[2].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> SnapshotCounts {
        let [built, sent, installed] = &*self.counts;
        SnapshotCounts {
            built: built.load(Ordering::Relaxed),
            sent: sent.load(Ordering::Relaxed),
            installed: installed.load(Ordering::Relaxed),
        }
    }
}
