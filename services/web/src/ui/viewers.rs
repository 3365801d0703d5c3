//! How many watch the page of a node.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::OwnedSemaphorePermit;

/// Counts those who watch, on all ports of a node. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Viewers(Arc<AtomicU64>);

/// The place of one of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
    counted: Viewers,
}

impl Viewers {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// One more.
    pub(crate) fn enter(&self, permit: OwnedSemaphorePermit) -> Place {
        self.0.fetch_add(1, Ordering::Relaxed);
        Place { _permit: permit, counted: self.clone() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.counted.0.fetch_sub(1, Ordering::Relaxed);
    }
}
