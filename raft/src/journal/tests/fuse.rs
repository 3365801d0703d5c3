//! Ends a simulated machine at a chosen operation on its storage.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

/// Counts operations; clones count together.
#[derive(Clone, Default)]
pub(super) struct Fuse {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    done: u64,
    crash_at: Option<u64>,
    crashed: bool,
}

/// What becomes of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// A crash of the process only.
    Nothing,
    Everything,
    /// Each sector, and each change of a name, is lost or not; the number seeds the choice.
    Some(u64),
}

impl Fuse {
    pub(super) fn crash_at(&self, operation: u64) {
        self.state.lock().crash_at = Some(operation);
    }

    /// How many operations were begun.
    pub(super) fn count(&self) -> u64 {
        self.state.lock().done
    }

    /// Begins an operation. `Ok(false)`: the machine ends in the middle of it, so it takes effect as
    /// far as chance will have it, and must be answered with [`Self::error`].
    pub(super) fn begin(&self) -> io::Result<bool> {
        let mut state = self.state.lock();
        if state.crashed {
            return Err(Self::error());
        }
        state.done += 1;
        state.crashed = state.crash_at == Some(state.done);
        Ok(!state.crashed)
    }

    pub(super) fn error() -> io::Error {
        io::Error::other("the machine has crashed")
    }
}
