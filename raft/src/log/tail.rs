//! The newest part of the log, in memory, and what is known of the rest.

use std::collections::VecDeque;

use crate::base::types::{Entry, LogId, Vote, entry_bytes};
use crate::disk::Loaded;
use crate::log::weights::Weights;

/// Entries at the end of the log, bounded by bytes. Invariant: indexes are consecutive, and
/// everything between `oldest` and the first entry here is in storage.
#[derive(Debug)]
pub(crate) struct Tail {
    entries: VecDeque<Entry>,
    /// Bytes of `entries`.
    bytes: usize,
    bytes_max: usize,
    /// Index of the first entry that is not purged.
    oldest: u64,
    last: Option<LogId>,
    /// Entries below this index are in storage (not necessarily durable) and may leave memory.
    written: u64,
    /// How often the end was cut. What storage reports of an earlier end says nothing of this one.
    cuts: u64,
    /// Of all entries that are not purged, also those in storage only.
    weights: Weights,
    pub(crate) vote: Option<Vote>,
    /// The vote that was found at the start.
    pub(crate) first_vote: Option<Vote>,
    pub(crate) committed: Option<LogId>,
    pub(crate) purged: Option<LogId>,
}

/// Where a range of entries has to be read.
#[derive(Debug)]
pub(crate) enum EntrySource {
    /// All of it is here.
    Memory(Vec<Entry>),
    /// The part from `start` up to before `end` is in storage only.
    Storage { start: u64, end: u64 },
}

impl Tail {
    /// An empty log.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            bytes_max,
            oldest: 0,
            last: None,
            written: 0,
            cuts: 0,
            weights: Weights::default(),
            vote: None,
            first_vote: None,
            committed: None,
            purged: None,
        }
    }

    /// Takes over an entry that was read from storage.
    pub(crate) fn push_loaded(&mut self, entry: Entry) {
        self.written = entry.log_id.index + 1;
        if self.last.is_none() {
            self.oldest = entry.log_id.index;
        }
        self.push(entry);
        self.shed();
    }

    /// Takes over the single values, after the last loaded entry.
    pub(crate) fn finish_load(&mut self, loaded: Loaded) {
        (self.vote, self.first_vote) = (loaded.vote, loaded.vote);
        self.committed = loaded.committed;
        self.purged = loaded.purged;
        if let Some(purged) = loaded.purged {
            self.oldest = purged.index + 1;
            self.last = self.last.or(Some(purged));
        }
    }

    /// The id of the last entry, or of the last purged one.
    pub(crate) fn last(&self) -> Option<LogId> {
        self.last
    }

    /// The first entry from which on to `upto` there are about so many bytes at most.
    pub(crate) fn first_within(&self, upto: u64, bytes_max: u64) -> u64 {
        self.weights.first_within(upto, bytes_max)
    }

    /// Appends entries.
    ///
    /// # Errors
    /// The index that was expected, if there would be a hole or an overlap.
    pub(crate) fn append(&mut self, entries: &[Entry]) -> Result<(), u64> {
        for entry in entries {
            match self.last {
                Some(last) if entry.log_id.index != last.index + 1 => return Err(last.index + 1),
                None => self.oldest = entry.log_id.index,
                Some(_) => {}
            }
            self.push(entry.clone());
        }
        self.shed();
        Ok(())
    }

    fn push(&mut self, entry: Entry) {
        let bytes = entry_bytes(&entry);
        self.last = Some(entry.log_id);
        self.bytes += bytes;
        self.weights.add(entry.log_id.index, bytes);
        self.entries.push_back(entry);
    }

    /// Lets go of the oldest entries beyond the bound, as far as storage has them. The last entry
    /// always stays.
    fn shed(&mut self) {
        while self.bytes > self.bytes_max && self.entries.len() > 1 && self.first() < self.written {
            self.pop_front();
        }
    }

    fn pop_front(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.bytes -= entry_bytes(&entry);
        }
    }

    /// Index of the first entry in memory.
    fn first(&self) -> u64 {
        self.entries.front().map_or(u64::MAX, |entry| entry.log_id.index)
    }

    /// Drops every entry behind `keep`.
    pub(crate) fn truncate_after(&mut self, keep: Option<LogId>) {
        let from = keep.map_or(0, |id| id.index + 1);
        while let Some(entry) = self.entries.pop_back_if(|entry| entry.log_id.index >= from) {
            self.bytes -= entry_bytes(&entry);
        }
        self.written = self.written.min(from);
        self.cuts += 1;
        self.weights.cut(from);
        if self.last.is_some_and(|last| last.index >= from) {
            self.last = keep;
        }
    }

    /// Storage has every entry below `index`, after having cut its end `cuts` times.
    pub(crate) fn set_written(&mut self, index: u64, cuts: u64) {
        if self.cuts == cuts {
            self.written = index;
            self.shed();
        }
    }

    /// The committed index, as far as storage has what it speaks of.
    pub(crate) fn storable_commit(&self) -> Option<LogId> {
        self.committed.filter(|committed| committed.index < self.written)
    }

    /// Forgets every entry up to `upto`.
    pub(crate) fn purge(&mut self, upto: LogId) {
        while self.first() <= upto.index {
            self.pop_front();
        }
        self.oldest = upto.index + 1;
        self.weights.purge(upto.index);
        self.written = self.written.max(self.oldest);
        self.purged = Some(upto);
        if self.last.is_none_or(|last| last.index < upto.index) {
            self.last = Some(upto);
        }
        if self.entries.capacity() > 4 * self.entries.len().max(1024) {
            self.entries.shrink_to_fit();
        }
    }

    /// The entries from `start` up to before `end`, as far as they exist, until about `bytes_max`
    /// bytes are taken, but at least one.
    pub(crate) fn range(&self, start: u64, end: u64, bytes_max: usize) -> EntrySource {
        let start = start.max(self.oldest);
        let end = end.min(self.last.map_or(0, |last| last.index + 1));
        if start >= end {
            return EntrySource::Memory(Vec::new());
        }
        let first = self.first();
        if start < first {
            return EntrySource::Storage { start, end: end.min(first) };
        }
        let from = usize::try_from(start - first).expect("an offset into memory");
        let upto = usize::try_from(end - first).expect("an offset into memory");
        let mut bytes = 0;
        let taken = self.entries.range(from..upto).take_while(|entry| {
            let more = bytes < bytes_max;
            bytes += entry_bytes(entry);
            more
        });
        EntrySource::Memory(taken.cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::test_entries::{entries, id};

    /// An append is answered before it is reported as stored. By then its end may have been cut, and other entries
    /// may stand there.
    #[test]
    fn what_storage_reports_of_an_end_that_was_cut_says_nothing_of_the_next_one() {
        let mut tail = Tail::new(100);
        tail.append(&entries(1, 0..10, 50)).unwrap();
        tail.truncate_after(Some(id(1, 4)));
        tail.append(&entries(2, 5..10, 50)).unwrap();
        tail.set_written(10, 0);
        let all = tail.range(0, 10, usize::MAX);
        assert!(matches!(&all, EntrySource::Memory(all) if all.len() == 10), "{all:?}");
        tail.set_written(10, 1);
        let all = tail.range(0, 10, usize::MAX);
        assert!(matches!(all, EntrySource::Storage { start: 0, .. }), "{all:?}");
    }
}
