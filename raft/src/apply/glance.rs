//! What can be known of the state without its lock, which apply holds for hundreds of commands at a time.

use std::sync::atomic::{AtomicU64, Ordering};

use tripod_state::State;
use tripod_state::ids::TimeMs;

use crate::base::types::LogId;

/// Written under the state's lock, and read without it. What is read may be older than the state, and never newer than what
/// whoever takes the lock afterwards finds.
#[derive(Debug, Default)]
pub(super) struct Glance {
    index: AtomicU64,
    bytes: AtomicU64,
    now_ms: AtomicU64,
}

impl Glance {
    /// The state is so.
    pub(super) fn note(&self, applied: Option<LogId>, state: &State) {
        self.bytes.store(state.bytes(), Ordering::SeqCst);
        self.now_ms.store(state.now_ms().0, Ordering::SeqCst);
        self.index.store(applied.map_or(0, |id| id.index), Ordering::SeqCst);
    }

    /// The last index in it.
    pub(super) fn index(&self) -> u64 {
        self.index.load(Ordering::SeqCst)
    }

    /// [`State::bytes`].
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }

    /// [`State::now_ms`].
    pub(super) fn now_ms(&self) -> TimeMs {
        TimeMs(self.now_ms.load(Ordering::SeqCst))
    }
}
