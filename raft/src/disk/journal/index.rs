//! Where entries stand in the journal's files.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::disk::Blob;
use crate::disk::journal::frame::{FrameNumber, SegmentNumber};

/// Where a record of entries stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordPosition {
    pub(crate) segment: SegmentNumber,
    pub(crate) frame: FrameNumber,
    /// Where the frame begins in its segment, bytes.
    pub(crate) offset_bytes: u64,
    /// Bytes of the frame's body.
    pub(crate) length: u32,
    /// Where the record begins in the body.
    pub(crate) record_at: u32,
}

/// The entries of one record that are part of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) last: u64,
    pub(crate) place: RecordPosition,
}

/// Runs by their first index, which is also the first that is part of the log. They do not overlap.
#[derive(Default)]
pub(crate) struct Index {
    runs: BTreeMap<u64, Run>,
    files: BTreeMap<SegmentNumber, Arc<dyn Blob>>,
    /// The home may be asked for entries below this index.
    pub(crate) home_end: u64,
}

impl Index {
    pub(crate) fn add_file(&mut self, segment: SegmentNumber, file: Arc<dyn Blob>) {
        self.files.insert(segment, file);
    }

    pub(crate) fn file(&self, segment: SegmentNumber) -> Option<Arc<dyn Blob>> {
        self.files.get(&segment).cloned()
    }

    pub(crate) fn add(&mut self, first: u64, last: u64, place: RecordPosition) {
        self.runs.insert(first, Run { last, place });
    }

    /// Forgets the entries from `from` on.
    pub(crate) fn cut(&mut self, from: u64) {
        self.runs.split_off(&from);
        if let Some((_, run)) = self.runs.iter_mut().next_back() {
            run.last = run.last.min(from.saturating_sub(1));
        }
        self.home_end = self.home_end.min(from);
    }

    /// Forgets the entries below `first`.
    pub(crate) fn drop_below(&mut self, first: u64) {
        while let Some(run) = self.runs.first_entry().filter(|run| *run.key() < first) {
            let (_, run) = run.remove_entry();
            if run.last >= first {
                self.runs.insert(first, run);
            }
        }
    }

    /// Forgets the files before `segment` and what stands in them.
    pub(crate) fn retire_before(&mut self, segment: SegmentNumber) {
        self.files = self.files.split_off(&segment);
        while let Some(run) = self.runs.first_entry().filter(|run| run.get().place.segment < segment) {
            run.remove();
        }
    }

    /// The run that holds an index.
    pub(crate) fn run_with(&self, index: u64) -> Option<Run> {
        let (_, run) = self.runs.range(..=index).next_back()?;
        (run.last >= index).then_some(*run)
    }

    /// The first index of the next run behind `index`.
    pub(crate) fn next_run(&self, index: u64) -> Option<u64> {
        self.runs.range(index..).next().map(|(first, _)| *first)
    }

    /// The segment of the first run that holds an entry from `first` on.
    pub(crate) fn oldest_segment(&self, first: u64) -> Option<SegmentNumber> {
        self.run_from(first).map(|run| run.place.segment)
    }

    fn run_from(&self, first: u64) -> Option<Run> {
        self.run_with(first).or_else(|| self.runs.range(first..).next().map(|(_, run)| *run))
    }

    /// The last index that stands in `segment`, or in one before it.
    pub(crate) fn last_within(&self, segment: SegmentNumber) -> Option<u64> {
        let within = self.runs.values().take_while(|run| run.place.segment <= segment);
        within.last().map(|run| run.last)
    }

    /// Lets go of all files.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
