//! When this node last learned something that only a leader with a quorum can tell.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

/// When that was. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastContact(Arc<Mutex<Option<Instant>>>);

impl LastContact {
    /// It is now. That something came from a leader is not enough: it must have come as the answer to what this node sent,
    /// or a node whose messages are lost would count as heard.
    pub(crate) fn note(&self) {
        *self.0.lock() = Some(Instant::now());
    }

    pub(crate) fn get(&self) -> Option<Instant> {
        *self.0.lock()
    }
}
