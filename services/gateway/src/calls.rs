//! How many calls wait on this node, and the bound on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::outage::Outage;

/// Counts the calls that wait: for an outcome, or for a leader.
pub(crate) struct Calls {
    waiting: AtomicU64,
    held: AtomicU64,
    held_total: AtomicU64,
    waiting_max: u64,
}

/// One waiting call.
pub(crate) struct Waiting {
    calls: Arc<Calls>,
    /// It waits for a leader, not for an outcome.
    is_held: bool,
}

impl Calls {
    pub(crate) fn new(waiting_max: u64) -> Arc<Self> {
        Arc::new(Self {
            waiting: AtomicU64::new(0),
            held: AtomicU64::new(0),
            held_total: AtomicU64::new(0),
            waiting_max,
        })
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Those that wait for a leader.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Those that have ever waited for a leader.
    pub(crate) fn held_total(&self) -> u64 {
        self.held_total.load(Ordering::Relaxed)
    }

    /// A call begins to wait for a leader.
    ///
    /// # Errors
    /// As [`Self::enter`].
    pub(crate) fn hold(self: &Arc<Self>) -> Result<Waiting, Outage> {
        let mut waiting = self.enter()?;
        waiting.is_held = true;
        self.held.fetch_add(1, Ordering::Relaxed);
        self.held_total.fetch_add(1, Ordering::Relaxed);
        Ok(waiting)
    }

    /// # Errors
    /// [`Outage::Overloaded`] beyond the bound.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<Waiting, Outage> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let entered = Waiting { calls: Arc::clone(self), is_held: false };
        if before >= self.waiting_max {
            return Err(Outage::Overloaded(format!("{before} calls wait on this node")));
        }
        Ok(entered)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.calls.waiting.fetch_sub(1, Ordering::Relaxed);
        if self.is_held {
            self.calls.held.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_beyond_the_bound_and_counts_only_those_who_wait() {
        let calls = Calls::new(2);
        let first = calls.enter().unwrap();
        let second = calls.enter().unwrap();
        assert!(matches!(calls.enter(), Err(Outage::Overloaded(_))));
        assert_eq!(calls.waiting(), 2);

        drop(first);
        assert!(calls.enter().is_ok());
        drop(second);
        assert_eq!(calls.waiting(), 0);
    }

    #[test]
    fn those_that_wait_for_a_leader_are_counted_among_all() {
        let calls = Calls::new(2);
        let held = calls.hold().unwrap();
        let waiting = calls.enter().unwrap();
        assert!(calls.hold().is_err());
        assert_eq!((calls.waiting(), calls.held(), calls.held_total()), (2, 1, 1));
        drop((held, waiting));
        assert_eq!((calls.waiting(), calls.held(), calls.held_total()), (0, 0, 1));
    }
}
