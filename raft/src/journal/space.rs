//! Whether there is room for the log to grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Low when the disk had no room for another segment. What is left of the last one is a reserve: votes,
/// purges and changes of membership go on, and what makes the log grow should be refused. It clears by
/// itself. Cheap to ask; clones tell the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Space {
    low: Arc<AtomicBool>,
}

impl Space {
    /// Whether growth should be refused.
    pub(crate) fn is_low(&self) -> bool {
        self.low.load(Ordering::Relaxed)
    }

    pub(crate) fn set_low(&self, low: bool) {
        if self.low.swap(low, Ordering::Relaxed) == low {
            return;
        }
        if low {
            tracing::warn!("no space for another journal segment");
        } else {
            tracing::info!("space for journal segments again");
        }
    }
}
