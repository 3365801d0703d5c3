//! Whether there is room for the log to grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Low when the disk had no room for another segment, or when whoever measures the disk found it down to
/// the reserve. What is left then is for votes, purges and changes of membership, and what makes the log
/// grow should be refused. It clears by itself. Cheap to ask; clones tell the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Space {
    words: Arc<Words>,
}

#[derive(Debug, Default)]
struct Words {
    out_of_segments: AtomicBool,
    tight: AtomicBool,
    closing: AtomicBool,
}

impl Space {
    /// Whether growth should be refused.
    pub(crate) fn is_low(&self) -> bool {
        self.is_out_of_segments() || self.words.tight.load(Ordering::Relaxed)
    }

    /// Whether there was no room for another segment.
    pub(crate) fn is_out_of_segments(&self) -> bool {
        self.words.out_of_segments.load(Ordering::Relaxed)
    }

    pub(crate) fn set_out_of_segments(&self, out: bool) {
        if self.words.out_of_segments.swap(out, Ordering::Relaxed) == out {
            return;
        }
        if out {
            tracing::warn!("no space for another journal segment");
        } else {
            tracing::info!("space for journal segments again");
        }
    }

    /// Says what was measured.
    pub(crate) fn set_tight(&self, tight: bool) {
        self.words.tight.store(tight, Ordering::Relaxed);
    }

    /// The node stops: nobody may wait for room any more.
    pub(crate) fn close(&self) {
        self.words.closing.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.words.closing.load(Ordering::Relaxed)
    }
}
