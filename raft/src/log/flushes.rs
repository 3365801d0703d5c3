//! What the writer waits for at the disk, for whoever must know that the disk does not answer. Only counters: the
//! writer needs no clock, and whoever watches it measures by its own.
//!
//! A group of changes counts, and so does what nobody waits for: the next group waits behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts how often one writer turns to the disk. Clones tell the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flushes {
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Flushes {
    /// The writer turns to the disk.
    pub(super) fn begin(&self) {
        self.counts.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// The disk has answered.
    pub(super) fn end(&self) {
        self.counts.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of what the disk has not answered yet, if there is anything.
    pub(crate) fn under_way(&self) -> Option<u64> {
        // In this order: what ends in between is then seen as ended.
        let begun = self.counts.begun.load(Ordering::Relaxed);
        let ended = self.counts.ended.load(Ordering::Relaxed);
        (begun > ended).then_some(begun)
    }
}
