//! What apply may know besides the state and the command.

use crate::ids::{CallId, LogIndex, Term, TimeMs};

/// The circumstances of one applied log entry. Everything in it is in the log, so every replica
/// sees the same values.
#[derive(Debug, Clone, Copy)]
pub struct ApplyContext {
    /// Where the command stands in the log.
    pub index: LogIndex,
    /// The term of the leader that proposed it.
    pub term: Term,
    /// The leader's wall clock when it proposed, in milliseconds since the epoch. [`crate::State`]
    /// clamps it so that time never runs backwards between two entries.
    pub now_ms: TimeMs,
}

impl ApplyContext {
    /// The id of a wait that this command begins.
    #[must_use]
    pub fn call(&self) -> CallId {
        CallId(self.index.0)
    }
}
