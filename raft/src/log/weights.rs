//! How many bytes of entries lie behind an index.

use std::collections::VecDeque;

/// Bytes between two marks, and so what an answer may be off.
pub(crate) const MARK_BYTES: u64 = if cfg!(test) { 16 << 10 } else { 1 << 20 };

/// Weighs the log as it grows, is cut and is purged. Remembers a mark every [`MARK_BYTES`], not every entry.
#[derive(Debug, Default)]
pub(crate) struct Weights {
    /// Bytes of all entries so far; only differences mean anything.
    total: u64,
    marks: VecDeque<Mark>,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    /// Index of an entry.
    index: u64,
    /// Bytes of all entries before it.
    before: u64,
}

impl Weights {
    /// The log grows by an entry of so many bytes.
    pub(crate) fn add(&mut self, index: u64, bytes: usize) {
        if self.marks.back().is_none_or(|mark| self.total - mark.before >= MARK_BYTES) {
            self.marks.push_back(Mark { index, before: self.total });
        }
        self.total += bytes as u64;
    }

    /// The entries from this index on are cut off.
    pub(crate) fn cut(&mut self, from: u64) {
        while let Some(mark) = self.marks.pop_back_if(|mark| mark.index >= from) {
            self.total = mark.before;
        }
    }

    /// The entries up to this one are gone.
    pub(crate) fn purge(&mut self, upto: u64) {
        while self.marks.get(1).is_some_and(|second| second.index <= upto + 1) {
            self.marks.pop_front();
        }
    }

    /// The first entry, as far as is known, from which on to `upto`, that one included, there are at most so
    /// many bytes. The one behind `upto` if that one alone has more.
    pub(crate) fn first_within(&self, upto: u64, bytes_max: u64) -> u64 {
        let beyond = self.marks.partition_point(|mark| mark.index <= upto);
        let through = self.marks.get(beyond).map_or(self.total, |mark| mark.before);
        let heavy = self.marks.partition_point(|mark| through.saturating_sub(mark.before) > bytes_max);
        self.marks.get(heavy).map_or(upto + 1, |mark| mark.index.min(upto + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: usize = 1 << 10;

    fn log(entries: u64) -> Weights {
        let mut weights = Weights::default();
        (0..entries).for_each(|index| weights.add(index, ENTRY));
        weights
    }

    /// Bytes from the first entry within the bound to `upto`.
    fn kept(weights: &Weights, upto: u64, bytes_max: u64) -> u64 {
        (upto + 1 - weights.first_within(upto, bytes_max)) * ENTRY as u64
    }

    #[test]
    fn what_is_within_is_never_more_and_not_much_less() {
        let weights = log(1000);
        for upto in [200, 201, 500, 998, 999] {
            for bytes_max in [50_000, 100_000, 150_000] {
                let kept = kept(&weights, upto, bytes_max);
                assert!(kept <= bytes_max, "{kept} of {bytes_max} before {upto}");
                assert!(kept + 2 * MARK_BYTES > bytes_max, "{kept} of {bytes_max} before {upto}");
            }
        }
        assert_eq!(weights.first_within(999, u64::MAX), 0);
        assert_eq!(Weights::default().first_within(7, 0), 8);
    }

    #[test]
    fn an_entry_that_is_too_heavy_alone_is_not_within() {
        let mut weights = log(3);
        weights.add(3, 1 << 20);
        assert_eq!(weights.first_within(3, 1000), 4);
        weights.add(4, 10);
        assert_eq!(weights.first_within(4, 1000), 4);
    }

    #[test]
    fn what_was_cut_off_weighs_nothing_and_what_is_purged_is_forgotten() {
        let mut weights = log(1000);
        weights.cut(500);
        assert!(kept(&weights, 499, 100_000) + 2 * MARK_BYTES > 100_000);
        (500..1000).for_each(|index| weights.add(index, ENTRY));
        let first = weights.first_within(999, 100_000);
        let marks = weights.marks.len();
        weights.purge(first - 1);
        assert!(weights.marks.len() < marks / 4, "{} of {marks} marks", weights.marks.len());
        assert_eq!(weights.first_within(999, 100_000), first);
        // A snapshot was installed: the log goes on behind it.
        weights.purge(5000);
        weights.add(5001, ENTRY);
        assert!(weights.first_within(5001, 100_000) <= 5001);
    }
}
