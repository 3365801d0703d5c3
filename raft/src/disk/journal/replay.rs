//! Rebuilds the log's values and index from the frames of its segments, in order.

use std::sync::Arc;

use crate::disk::journal::frame::{FrameHead, FrameNumber, SegmentNumber};
use crate::disk::journal::index::{Index, RecordPosition};
use crate::disk::journal::record::{self, Record};
use crate::disk::journal::scan::Scan;
use crate::disk::journal::state::{LogValues, behind};
use crate::disk::{Blob, DiskError};

/// What is wrong with a segment that says nothing of the log before it says more.
const WITHOUT_VALUES: &str = "does not begin with the values of the log";

/// A log that is being rebuilt.
pub(crate) struct Replay {
    directory: String,
    values: Option<LogValues>,
    index: Index,
    last_frame: Option<FrameNumber>,
    /// Whether entries are looked at.
    with_entries: bool,
}

impl Replay {
    pub(crate) fn new(directory: &str) -> Self {
        Self {
            directory: directory.to_owned(),
            values: None,
            index: Index::default(),
            last_frame: None,
            with_entries: true,
        }
    }

    /// Takes in the next segment.
    ///
    /// # Errors
    /// [`DiskError::DamagedFile`] if it does not continue the one before.
    pub(crate) fn take(&mut self, segment: &Scan, file: Arc<dyn Blob>) -> Result<(), DiskError> {
        self.index.add_file(segment.number, file);
        for &(offset_bytes, head) in &segment.frames {
            if self.last_frame.is_some_and(|last| last.next() != head.number) {
                let problem = format!("frame {} stands where another must follow", head.number.0);
                return Err(self.damaged(segment.number, offset_bytes, problem));
            }
            self.last_frame = Some(head.number);
            self.take_frame(segment, offset_bytes, head)?;
        }
        Ok(())
    }

    /// Takes in what one segment says of the log's values, without the segments before it.
    pub(crate) fn take_values(&mut self, segment: &Scan) -> Result<(), DiskError> {
        self.with_entries = false;
        segment
            .frames
            .iter()
            .try_for_each(|&(offset_bytes, head)| self.take_frame(segment, offset_bytes, head))
    }

    /// The number of the frame that comes next.
    pub(crate) fn next_frame(&self) -> FrameNumber {
        self.last_frame.expect("the last segment holds a frame").next()
    }

    /// What was rebuilt.
    pub(crate) fn finish(self) -> (LogValues, Index) {
        let values = self.values.expect("a segment begins with the values");
        let mut index = self.index;
        index.home_end = behind(values.checkpoint.through);
        (values, index)
    }

    fn take_frame(&mut self, segment: &Scan, offset_bytes: u64, head: FrameHead) -> Result<(), DiskError> {
        let place = RecordPosition {
            segment: segment.number,
            frame: head.number,
            offset_bytes,
            length: head.length,
            record_at: 0,
        };
        let taken = self.take_records(segment.body(offset_bytes, head), place);
        taken.map_err(|problem| self.damaged(segment.number, offset_bytes, problem))
    }

    fn take_records(&mut self, body: &[u8], place: RecordPosition) -> Result<(), String> {
        let mut at = 0;
        while at < body.len() {
            let (record, next) = record::parse(body, at)?;
            let record_at = u32::try_from(at).map_err(|error| error.to_string())?;
            self.take_record(&record, RecordPosition { record_at, ..place })?;
            at = next;
        }
        // Also a frame that holds nothing must come behind them.
        if self.values.is_none() { Err(WITHOUT_VALUES.into()) } else { Ok(()) }
    }

    fn take_record(&mut self, record: &Record<'_>, place: RecordPosition) -> Result<(), String> {
        let values = match (&mut self.values, record) {
            (known, Record::Base(base)) => {
                if known.is_some_and(|known| known != *base) {
                    return Err("does not begin where the segment before it ends".into());
                }
                *known = Some(*base);
                return Ok(());
            }
            (None, _) => return Err(WITHOUT_VALUES.into()),
            (Some(values), _) => values,
        };
        match record {
            Record::Base(_) => {}
            Record::Entries(entries) => {
                if !self.with_entries {
                    return Ok(());
                }
                let (first, last) = entries.ends()?;
                if values.next_index().is_some_and(|next| next != first.index) {
                    return Err(format!("holds entry {}, which does not continue the log", first.index));
                }
                values.last = Some(last);
                self.index.add(first.index, last.index, place);
            }
            Record::Vote(vote) => values.vote = Some(*vote),
            Record::TruncateAfter(keep) => {
                values.truncate_after(*keep);
                self.index.cut(behind(*keep));
            }
            Record::Purge(upto) => {
                values.purge(*upto);
                self.index.drop_below(upto.index + 1);
            }
            Record::Committed(id) => values.committed = Some(*id),
            Record::Checkpoint(checkpoint) => values.checkpoint = *checkpoint,
        }
        Ok(())
    }

    fn damaged(&self, segment: SegmentNumber, offset_bytes: u64, problem: String) -> DiskError {
        let file = format!("{}/{}", self.directory, segment.file_name());
        DiskError::DamagedFile { file, offset_bytes, problem }
    }
}
