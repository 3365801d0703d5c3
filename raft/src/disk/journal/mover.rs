//! Moves committed entries from the journal into the home of the log.

use crate::base::types::{LogId, Vote};
use crate::disk::journal::reader::JournalReader;
use crate::disk::journal::record::{Moved, chained};
use crate::disk::{Change, Disk, DiskError, OldEntries};

/// Bytes of entries that are read, and written to the home, at a time.
const STEP_BYTES: usize = 1 << 20;

/// One step for the home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Move {
    /// Drop everything behind this id first: it was cut off the log.
    pub(crate) cut: Option<Option<LogId>>,
    pub(crate) purge: Option<LogId>,
    /// First and last index to take from the journal.
    pub(crate) run: Option<(u64, u64)>,
    pub(crate) vote: Option<Vote>,
    pub(crate) committed: Option<LogId>,
}

/// What the home holds now, durably.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MoveDone {
    /// The run that was moved, and the id of its last entry.
    pub(crate) moved: Option<(Moved, LogId)>,
}

impl Move {
    /// Carries it out. Blocks; durable when it returns.
    pub(crate) fn carry_out(
        &self,
        home: &mut dyn Disk,
        journal: &JournalReader,
    ) -> Result<MoveDone, DiskError> {
        let mut changes = Vec::new();
        changes.extend(self.cut.map(Change::TruncateAfter));
        changes.extend(self.purge.map(Change::Purge));
        changes.extend(self.vote.map(Change::Vote));
        changes.extend(self.committed.map(Change::Committed));
        home.write(&changes)?;
        let moved = match self.run {
            Some((first, last)) => move_run(first, last, home, journal)?,
            None => None,
        };
        home.sync()?;
        Ok(MoveDone { moved })
    }
}

/// Moves the entries from `first` to `last`, or up to where a purge has overtaken this move.
fn move_run(
    first: u64,
    last: u64,
    home: &mut dyn Disk,
    journal: &JournalReader,
) -> Result<Option<(Moved, LogId)>, DiskError> {
    let mut done: Option<(Moved, LogId)> = None;
    let mut next = first;
    while next <= last {
        let entries = journal.read(next, last + 1, STEP_BYTES)?;
        let consecutive = entries.iter().zip(next..).all(|(entry, index)| entry.log_id.index == index);
        let Some(end) = entries.last().map(|entry| entry.log_id).filter(|_| consecutive) else { break };
        let before = done.map_or(0, |(moved, _)| moved.chain);
        let chain = entries.iter().fold(before, chained);
        home.write(&[Change::Append(entries)])?;
        done = Some((Moved { first, last: end.index, chain }, end));
        next = end.index + 1;
    }
    Ok(done)
}
