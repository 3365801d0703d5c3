//! Compares the home of the log with what the journal's last checkpoint promised of it.
//!
//! sled answers some damage by forgetting everything behind it, without an error. What it must hold
//! is therefore written where it cannot forget it.

use crate::journal::record::{Moved, chained};
use crate::journal::state::{LogValues, behind};
use crate::log_store::{DiskError, Loaded};
use crate::types::{Entry, LogId};

/// Watches the entries of a home while they are loaded.
pub(crate) struct HomeCheck<'p> {
    log: LogValues,
    directory: &'p str,
    /// The last entry within the promise.
    last: Option<LogId>,
    /// Whether there is more than was promised.
    more: bool,
    /// Hash of the entries that were moved last, as far as they were seen from the first on.
    chain: Option<u64>,
}

impl<'p> HomeCheck<'p> {
    /// `log` is what the journal says; `directory` is for messages.
    pub(crate) fn new(log: &LogValues, directory: &'p str) -> Self {
        Self { log: *log, directory, last: None, more: false, chain: None }
    }

    /// Takes the next entry, and passes it on if it is part of the log.
    pub(crate) fn take(&mut self, entry: Entry, each: &mut dyn FnMut(Entry)) {
        let index = entry.log_id.index;
        if index >= behind(self.log.checkpoint.through) {
            self.more = true;
            return;
        }
        self.last = Some(entry.log_id);
        if let Some(Moved { first, last, .. }) = self.log.checkpoint.moved {
            if index == first {
                self.chain = Some(chained(0, &entry));
            } else if index <= last {
                self.chain = self.chain.map(|chain| chained(chain, &entry));
            }
        }
        if index >= behind(self.log.purged) {
            each(entry);
        }
    }

    /// Says whether the home holds more than was promised.
    ///
    /// # Errors
    /// [`DiskError::Damaged`] if it holds less, or something else.
    pub(crate) fn finish(self, held: &Loaded) -> Result<bool, DiskError> {
        let through = self.log.checkpoint.through;
        let known = self.last.map_or(0, |last| last.index + 1).max(behind(held.purged));
        if behind(through) > behind(self.log.purged) && self.last != through {
            let promised = through.map_or_else(String::new, |id| id.to_string());
            return Err(self.damaged(known, &format!("is missing: sled held the log up to {promised} once")));
        }
        if behind(held.purged) > behind(self.log.purged) {
            return Err(self.damaged(behind(held.purged), "is purged in sled, but not in the journal"));
        }
        // With every move the home is told what the journal said then.
        if behind(held.committed) > behind(self.log.committed) {
            return Err(
                self.damaged(behind(self.log.committed), "is committed in sled, but not in the journal")
            );
        }
        if held.vote.partial_cmp(&self.log.vote) == Some(std::cmp::Ordering::Greater) {
            return Err(self.damaged(known, "has a later vote in sled than in the journal"));
        }
        if let (Some(moved), Some(chain)) = (self.log.checkpoint.moved, self.chain)
            && chain != moved.chain
        {
            let problem = format!("and those up to {} are not what was moved to sled", moved.last);
            return Err(self.damaged(moved.first, &problem));
        }
        Ok(self.more)
    }

    fn damaged(&self, index: u64, problem: &str) -> DiskError {
        DiskError::Damaged { directory: self.directory.to_owned(), index, problem: problem.to_owned() }
    }
}
