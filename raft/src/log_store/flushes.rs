//! Which group the writer is making durable, for whoever must know that the disk does not answer. Only
//! counters: the writer needs no clock, and whoever watches it measures by its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the groups of one writer. Clones tell the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flushes {
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    begun: AtomicU64,
    ended: AtomicU64,
    #[cfg(test)]
    stalled: parking_lot::Mutex<bool>,
    #[cfg(test)]
    released: parking_lot::Condvar,
}

impl Flushes {
    /// The writer turns to the disk.
    pub(super) fn begin(&self) {
        self.counts.begun.fetch_add(1, Ordering::Relaxed);
        #[cfg(test)]
        self.counts.released.wait_while(&mut self.counts.stalled.lock(), |stalled| *stalled);
    }

    /// The disk has answered.
    pub(super) fn end(&self) {
        self.counts.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of the group that the disk has not answered for yet, if there is one.
    pub(crate) fn under_way(&self) -> Option<u64> {
        // In this order: a group that ends in between is then seen as ended.
        let begun = self.counts.begun.load(Ordering::Relaxed);
        let ended = self.counts.ended.load(Ordering::Relaxed);
        (begun > ended).then_some(begun)
    }

    /// Lets the disk answer nothing, or again everything.
    #[cfg(test)]
    pub(crate) fn stall(&self, stalled: bool) {
        *self.counts.stalled.lock() = stalled;
        self.counts.released.notify_all();
    }
}
