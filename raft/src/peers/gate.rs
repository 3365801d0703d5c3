//! Which messages of peers are let in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tonic::Status;

const CLOSED: u8 = 0;
const LEARNING: u8 = 1;
const OPEN: u8 = 2;

/// Opens in two steps. Clones are the same gate.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    stage: Arc<AtomicU8>,
}

impl Gate {
    /// Nothing passes.
    pub(crate) fn closed() -> Self {
        Self { stage: Arc::new(AtomicU8::new(CLOSED)) }
    }

    /// Entries and snapshots pass from now on.
    pub(crate) fn let_entries_in(&self) {
        self.stage.fetch_max(LEARNING, Ordering::SeqCst);
    }

    /// Everything passes from now on.
    pub(crate) fn open(&self) {
        self.stage.store(OPEN, Ordering::SeqCst);
    }

    /// # Errors
    /// Entries must not be taken yet.
    pub(crate) fn check_entries(&self) -> Result<(), Status> {
        self.check(LEARNING)
    }

    /// # Errors
    /// This node must not vote yet, nor be counted as one that is led.
    pub(crate) fn check_votes(&self) -> Result<(), Status> {
        self.check(OPEN)
    }

    fn check(&self, least: u8) -> Result<(), Status> {
        if self.stage.load(Ordering::SeqCst) >= least {
            return Ok(());
        }
        Err(Status::unavailable("this node has no data yet and takes no part"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_pass_before_votes_do() {
        let gate = Gate::closed();
        assert!(gate.check_entries().is_err() && gate.check_votes().is_err());
        gate.let_entries_in();
        assert!(gate.check_entries().is_ok() && gate.check_votes().is_err());
        gate.open();
        gate.let_entries_in();
        assert!(gate.check_entries().is_ok() && gate.check_votes().is_ok());
    }
}
