//! When the home of the log is to take entries over, or to forget some.

use crate::base::types::LogId;
use crate::disk::journal::mover::{Move, MoveDone};
use crate::disk::journal::record::Moved;
use crate::disk::journal::state::{LogValues, behind};

/// The home is told of a purge for its own sake when it could forget this many entries.
const PURGE_ENTRIES: u64 = 4096;

/// One move at a time: given out, done, and put into a checkpoint before the next.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    in_flight: Option<Move>,
    outcome: Option<(Moved, LogId)>,
    /// The home may hold entries that were cut off the log.
    must_cut: bool,
    /// What the home has purged.
    pub(crate) home_purged: Option<LogId>,
}

impl Moves {
    /// Whether the next move may be given out.
    pub(crate) fn is_free(&self) -> bool {
        self.in_flight.is_none() && self.outcome.is_none()
    }

    /// The next move, if it is free. `overdue` is the last index that should leave the journal.
    pub(crate) fn next(&mut self, log: &LogValues, overdue: Option<u64>) -> Option<Move> {
        let first = log.first_needed();
        // What is not committed may still be cut off.
        let last = overdue.zip(log.committed).map(|(overdue, committed)| overdue.min(committed.index));
        let run = last.filter(|last| *last >= first).map(|last| (first, last));
        let purge = log.purged.filter(|purged| Some(*purged) != self.home_purged);
        if run.is_none() && !self.must_cut && !self.is_worth_a_purge(log) {
            return None;
        }
        let cut = self.must_cut.then_some(log.checkpoint.through);
        self.must_cut = false;
        let order = Move { cut, purge, run, vote: log.vote, committed: log.committed };
        self.in_flight = Some(order.clone());
        Some(order)
    }

    fn is_worth_a_purge(&self, log: &LogValues) -> bool {
        let (purged, known) = (behind(log.purged), behind(self.home_purged));
        let held = behind(log.checkpoint.through);
        held > known && purged > known && (purged >= held || purged - known >= PURGE_ENTRIES)
    }

    pub(crate) fn done(&mut self, done: MoveDone) {
        let order = self.in_flight.take().expect("a move ends once, after it was given out");
        self.home_purged = order.purge.or(self.home_purged);
        // The home holds what was moved, but that is to be cut: then nothing may be promised.
        self.outcome = done.moved.filter(|_| !self.must_cut);
    }

    /// Whether a move is being carried out.
    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Whether something waits for a checkpoint.
    pub(crate) fn has_outcome(&self) -> bool {
        self.outcome.is_some()
    }

    /// What may be put into a checkpoint now.
    pub(crate) fn take_outcome(&mut self) -> Option<(Moved, LogId)> {
        self.outcome.take()
    }

    /// The log was cut behind `keep`. `through` is what the home was known to hold.
    pub(crate) fn cut(&mut self, keep: Option<LogId>, through: Option<LogId>) {
        let from = behind(keep);
        let moving = self.in_flight.as_ref().and_then(|order| order.run).map(|(_, last)| last + 1);
        let moved = self.outcome.map(|(_, last)| last.index + 1);
        let held = moving.max(moved).unwrap_or(0).max(behind(through));
        if held > from {
            self.must_cut = true;
            self.outcome = None;
        }
    }
}
