//! What the segment files of a journal hold, one by one, for people. Judges nothing that
//! [`super::recovery`] judges: it shows where to look.

use std::io;

use serde::Serialize;

use crate::disk::Files;
use crate::disk::journal::frame::{JournalId, SegmentNumber};
use crate::disk::journal::record::{self, Record};
use crate::disk::journal::scan::Scan;

/// One segment file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SegmentFacts {
    /// Its name in the journal's directory.
    pub file: String,
    pub file_bytes: u64,
    /// Whole frames at its beginning. None: it is ready for use, or its first frame is damaged.
    pub frames: u64,
    /// Where they end.
    pub frames_end_bytes: u64,
    /// The first and the last entry in them, whatever was truncated or purged since.
    pub first_index: Option<u64>,
    pub last_index: Option<u64>,
    /// A frame cannot be read, but a later one was begun: damage, at `frames_end_bytes`.
    pub damaged: bool,
}

/// Looks at all segments of a journal, in order. Blocks.
pub(crate) fn inspect(files: &dyn Files, journal: JournalId) -> io::Result<Vec<SegmentFacts>> {
    let mut numbers: Vec<SegmentNumber> =
        files.list()?.iter().filter_map(|name| SegmentNumber::of_file(name)).collect();
    numbers.sort();
    numbers.into_iter().map(|number| look(files, journal, number)).collect()
}

fn look(files: &dyn Files, journal: JournalId, number: SegmentNumber) -> io::Result<SegmentFacts> {
    let file = number.file_name();
    let scan = Scan::read(&*files.open(&file)?, journal, number)?;
    let indexes: Vec<u64> = scan
        .frames
        .iter()
        .flat_map(|&(offset_bytes, head)| entries_of(scan.body(offset_bytes, head)))
        .collect();
    let next = scan.frames.last().map(|(_, head)| head.number.next());
    let damaged = match (next, scan.claim()) {
        (Some(next), Some(claim)) => claim > next,
        // A file that was made ready holds no frame of its number at all.
        (None, claim) => claim.is_some(),
        (Some(_), None) => false,
    };
    Ok(SegmentFacts {
        file,
        file_bytes: scan.size_bytes(),
        frames: scan.frames.len() as u64,
        frames_end_bytes: scan.end_bytes(),
        first_index: indexes.iter().min().copied(),
        last_index: indexes.iter().max().copied(),
        damaged,
    })
}

/// The indexes at the ends of the records of entries in a frame, as far as they can be read.
fn entries_of(body: &[u8]) -> Vec<u64> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Ok((record, next)) = record::parse(body, at) {
        if let Record::Entries(entries) = record
            && let Ok((first, last)) = entries.ends()
        {
            found.extend([first.index, last.index]);
        }
        at = next;
    }
    found
}
