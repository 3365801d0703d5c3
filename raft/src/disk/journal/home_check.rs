//! Compares the home of the log with what the journal's last checkpoint promised of it.
//!
//! sled answers some damage by forgetting everything behind it, without an error. What it must hold
//! is therefore written where it cannot forget it.

use crate::base::types::{Entry, LogId};
use crate::disk::journal::record::{Moved, chained};
use crate::disk::journal::state::{LogValues, behind};
use crate::disk::{DiskError, Loaded};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::test_entries::{entries, id};
    use crate::base::types::Vote;
    use crate::disk::journal::frame::SegmentNumber;
    use crate::disk::journal::record::Checkpoint;

    /// What the journal promises: the home holds 3 to 6, of which 5 and 6 were moved last; 0 to 2 are purged.
    fn promise() -> LogValues {
        let last_move = entries(1, 5..7, 10);
        let chain = last_move.iter().fold(0, chained);
        let checkpoint = Checkpoint {
            through: Some(id(1, 6)),
            moved: Some(Moved { first: 5, last: 6, chain }),
            oldest: SegmentNumber(1),
        };
        LogValues {
            vote: Some(Vote::new(2, 1)),
            committed: Some(id(1, 8)),
            purged: Some(id(1, 2)),
            last: Some(id(1, 9)),
            checkpoint,
        }
    }

    /// What a sound home says.
    fn sound() -> Loaded {
        Loaded { vote: Some(Vote::new(2, 1)), committed: Some(id(1, 6)), purged: Some(id(1, 2)) }
    }

    fn judge(held: impl IntoIterator<Item = Entry>, said: &Loaded) -> Result<(bool, Vec<u64>), String> {
        let log = promise();
        let mut check = HomeCheck::new(&log, "home");
        let mut passed = Vec::new();
        held.into_iter().for_each(|entry| check.take(entry, &mut |entry| passed.push(entry.log_id.index)));
        check.finish(said).map(|more| (more, passed)).map_err(|error| error.to_string())
    }

    fn refusal(held: impl IntoIterator<Item = Entry>, said: &Loaded) -> String {
        let refusal = judge(held, said).unwrap_err();
        assert!(refusal.starts_with("T3101 log-damaged"), "{refusal}");
        refusal
    }

    #[test]
    fn what_was_promised_is_passed_on_without_what_is_purged_and_what_is_more() {
        assert_eq!(judge(entries(1, 3..7, 10), &sound()), Ok((false, vec![3, 4, 5, 6])));
        // A purge that has not come this far, and a move without its checkpoint.
        let early = Loaded { purged: None, ..sound() };
        assert_eq!(judge(entries(1, 0..9, 10), &early), Ok((true, vec![3, 4, 5, 6])));
    }

    #[test]
    fn less_than_was_promised_is_refused() {
        let text = refusal(entries(1, 3..6, 10), &sound());
        assert!(text.contains("entry 6 is missing"), "{text}");
        let text = refusal([], &sound());
        assert!(text.contains("entry 3 is missing"), "{text}");
    }

    #[test]
    fn another_entry_in_the_place_of_one_that_was_moved_is_refused() {
        let other = entries(1, 3..6, 10).into_iter().chain(entries(1, 6..7, 11));
        let text = refusal(other, &sound());
        assert!(text.contains("entry 5 and those up to 6 are not what was moved"), "{text}");
    }

    /// The journal is older than its home: it has lost its end.
    #[test]
    fn a_home_that_knows_more_than_the_journal_is_refused() {
        let said = Loaded { purged: Some(id(1, 4)), ..sound() };
        let text = refusal(entries(1, 5..7, 10), &said);
        assert!(text.contains("is purged in sled, but not in the journal"), "{text}");
        let said = Loaded { committed: Some(id(1, 9)), ..sound() };
        let text = refusal(entries(1, 3..7, 10), &said);
        assert!(text.contains("is committed in sled, but not in the journal"), "{text}");
        for vote in [Vote::new(3, 1), Vote::new_committed(2, 1)] {
            let said = Loaded { vote: Some(vote), ..sound() };
            let text = refusal(entries(1, 3..7, 10), &said);
            assert!(text.contains("has a later vote in sled than in the journal"), "{text}");
        }
    }
}
