//! What the parts of a simulated disk share: the order in which they were used, how much of that has reached
//! the medium, and when the machine ends.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

/// The medium under files and home. Clones are the same.
///
/// An operation is seen at once by whoever reads; on the medium it is performed later, if operations are
/// queued, in the order in which all of them were begun. A crash in between performs the first few of the
/// queue. A sync that was not performed has not happened: whoever asked for it must be kept waiting.
#[derive(Clone, Default)]
pub(crate) struct Medium {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    begun: u64,
    crash_at: Option<u64>,
    crashed: bool,
    queued: Option<VecDeque<Operation>>,
    lying: bool,
}

/// What an operation does to the medium.
type Operation = Box<dyn FnOnce(Sync) + Send>;

/// What a sync does when it is performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// It makes durable.
    Honest,
    /// It only says so.
    Lying,
}

/// What becomes of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// A crash of the process only.
    Nothing,
    Everything,
    /// Each sector, and each change of a name, is lost or not; the number seeds the choice.
    Some(u64),
}

impl Medium {
    /// A medium on which operations are performed when [`Self::settle`] is called.
    pub(super) fn queueing() -> Self {
        let state = State { queued: Some(VecDeque::new()), ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Ends the machine at this operation.
    #[cfg(test)]
    pub(crate) fn crash_at(&self, operation: u64) {
        self.state.lock().crash_at = Some(operation);
    }

    /// How many operations were begun.
    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        self.state.lock().begun
    }

    /// Begins an operation. `Ok(false)`: the machine ends in the middle of it, so it takes effect as
    /// far as chance will have it, and must be answered with [`Self::error`].
    pub(super) fn begin(&self) -> io::Result<bool> {
        let mut state = self.state.lock();
        if state.crashed {
            return Err(Self::error());
        }
        state.begun += 1;
        state.crashed = state.crash_at == Some(state.begun);
        Ok(!state.crashed)
    }

    pub(super) fn error() -> io::Error {
        io::Error::other("the machine has crashed")
    }

    /// Performs an operation on the medium, now or later. No lock that it takes may be held.
    pub(super) fn perform(&self, operation: impl FnOnce(Sync) + Send + 'static) {
        let mut state = self.state.lock();
        if let Some(queued) = &mut state.queued {
            queued.push_back(Box::new(operation));
            return;
        }
        let sync = state.sync();
        drop(state);
        operation(sync);
    }

    /// How many operations wait to be performed.
    pub(super) fn queued(&self) -> usize {
        self.state.lock().queued.as_ref().map_or(0, VecDeque::len)
    }

    /// Performs what is queued.
    pub(super) fn settle(&self) {
        self.perform_first(self.queued());
    }

    /// Ends the machine after the first operations of the queue. The others do not happen.
    pub(super) fn cut(&self, first: usize) {
        self.perform_first(first);
        let mut state = self.state.lock();
        state.crashed = true;
        state.queued = Some(VecDeque::new());
    }

    fn perform_first(&self, first: usize) {
        for _ in 0..first {
            let mut state = self.state.lock();
            let sync = state.sync();
            let next = state.queued.as_mut().and_then(VecDeque::pop_front);
            drop(state);
            let Some(operation) = next else { return };
            operation(sync);
        }
    }

    /// From now on syncs say that they have made durable, and do not.
    pub(super) fn set_lying(&self, lying: bool) {
        self.state.lock().lying = lying;
    }
}

impl State {
    fn sync(&self) -> Sync {
        if self.lying { Sync::Lying } else { Sync::Honest }
    }
}
