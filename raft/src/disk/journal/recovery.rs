//! Opens a journal: finds its end, refuses what cannot be proved whole, and cuts off what was never
//! finished.
//!
//! Frames are written one at a time, each durable before the next is begun. So whatever stands behind
//! a frame, a header or a seal, proves that frame durable; a frame that is bad although it was durable
//! is damage, and the start is refused. A bad frame that nothing follows was never acknowledged.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::disk::journal::engine::{JournalOptions, Opened, Segment};
use crate::disk::journal::frame::{self, ALIGN, FrameNumber, JournalId, Salt, SegmentHead, SegmentNumber};
use crate::disk::journal::pool::{self, Pool, Ready};
use crate::disk::journal::record::Record;
use crate::disk::journal::replay::Replay;
use crate::disk::journal::scan::{self, Scan};
use crate::disk::journal::state::LogValues;
use crate::disk::{Blob, DiskError, Files};

/// The number of the first segment.
pub(crate) const FIRST_SEGMENT: SegmentNumber = SegmentNumber(1);
const FIRST_FRAME: FrameNumber = FrameNumber(1);

/// The files of a journal that is being opened.
struct Found {
    number: SegmentNumber,
    file: Arc<dyn Blob>,
}

/// Refuses a directory that holds more than a creation leaves which was interrupted. The home then knew of a
/// journal once and has forgotten it: to make a new one would be to lose the log in silence.
pub(crate) fn expect_unused(files: &dyn Files) -> Result<(), DiskError> {
    let names = files.list().map_err(|error| io(files, "open", &error))?;
    let forgotten = |number, offset_bytes| {
        let problem = "it is in use, but the log beside it has lost what it knew of this journal".into();
        Err(damaged(files, number, offset_bytes, problem))
    };
    for number in names.iter().filter_map(|name| SegmentNumber::of_file(name)) {
        if number != FIRST_SEGMENT {
            return forgotten(number, 0);
        }
        let open = files.open(&number.file_name()).and_then(|file| Scan::of_itself(&*file, number));
        // A file has its name only when all of it is durable.
        let Some(scan) = open.map_err(|error| io(files, "read", &error))? else {
            return forgotten(number, 0);
        };
        if scan.frames.len() != 1 || scan.claim().is_some() {
            return forgotten(number, scan.end_bytes());
        }
    }
    Ok(())
}

/// Makes the first segment of a new journal, which continues a log with these values. Whatever else
/// is in the directory comes from an attempt that was interrupted; see [`expect_unused`].
pub(crate) fn create(
    files: &dyn Files,
    journal: JournalId,
    values: LogValues,
    options: JournalOptions,
) -> Result<(), DiskError> {
    let mut content = Vec::new();
    let mut base = Vec::new();
    SegmentHead::new(journal, FIRST_SEGMENT, options.segment_bytes).encode(&mut content);
    Record::Base(values).encode(&mut base);
    frame::encode(&mut content, Salt::new(journal, FIRST_SEGMENT), FIRST_FRAME, [&base, &[]]);
    let made = files.list().and_then(|names| {
        names.iter().try_for_each(|name| files.remove(name))?;
        files.sync_dir()?;
        pool::make(files, FIRST_SEGMENT, options.segment_bytes, &content)
    });
    made.map(|_| ()).map_err(|error| io(files, "create", &error))
}

/// Opens the journal. Blocks.
pub(crate) fn recover(
    files: &dyn Files,
    journal: JournalId,
    options: JournalOptions,
) -> Result<Opened, DiskError> {
    let found = find(files)?;
    for segment in &found {
        check_size(files, segment, options)?;
    }
    let last = last_begun(files, journal, &found)?;
    let end = read(files, journal, &found[last])?;
    let beyond = match found.get(last + 1) {
        Some(next) => read(files, journal, next)?.claim().map(|claim| (&*next.file, claim)),
        None => None,
    };
    let oldest = oldest_needed(files, &end)?;
    let lowest = found[0].number;
    if oldest < lowest || oldest > end.number {
        return Err(missing(files, oldest));
    }
    let first = usize::try_from(oldest.0 - lowest.0).expect("an index of the list");
    let mut replay = Replay::new(files.place());
    for older in &found[first..last] {
        replay.take(&read(files, journal, older)?, older.file.clone())?;
    }
    replay.take(&end, found[last].file.clone())?;
    let next_frame = replay.next_frame();
    let claim = end.claim().max(beyond.map(|(_, claim)| claim));
    if let Some(claim) = claim.filter(|claim| *claim > next_frame) {
        let problem = format!("frame {} cannot be read, but frame {} was begun", next_frame.0, claim.0);
        return Err(damaged(files, end.number, end.end_bytes(), problem));
    }
    let beyond = beyond.map(|(file, _)| file);
    files.sync_dir().map_err(|error| io(files, "sync", &error))?;
    settle(&*found[last].file, beyond, journal, &end, next_frame).map_err(|e| io(files, "repair", &e))?;
    Ok(opened(found, (first, last), &end, replay, options))
}

fn opened(
    found: Vec<Found>,
    (first, last): (usize, usize),
    end: &Scan,
    replay: Replay,
    options: JournalOptions,
) -> Opened {
    let next_frame = replay.next_frame();
    let (values, index) = replay.finish();
    let numbers = |range: std::ops::Range<usize>| -> VecDeque<SegmentNumber> {
        found[range].iter().map(|found| found.number).collect()
    };
    let (retired, held) = (numbers(0..first), numbers(first..last));
    let mut found = found.into_iter().skip(last);
    let Found { number, file } = found.next().expect("the last begun segment was found");
    let ready = found.map(|found| Ready { number: found.number, file: found.file }).collect();
    let pool = Pool::new(held, retired, ready, number, options.held_max);
    let (end_bytes, size_bytes) = (end.end_bytes(), end.size_bytes());
    let current = Segment { number, file, end_bytes, size_bytes };
    Opened { values, current, next_frame, pool, index }
}

/// All segment files, in order.
fn find(files: &dyn Files) -> Result<Vec<Found>, DiskError> {
    pool::remove_unfinished(files).map_err(|error| io(files, "open", &error))?;
    let names = files.list().map_err(|error| io(files, "open", &error))?;
    let mut numbers: Vec<SegmentNumber> =
        names.iter().filter_map(|name| SegmentNumber::of_file(name)).collect();
    numbers.sort();
    for pair in numbers.windows(2) {
        if pair[0].next() != pair[1] {
            return Err(missing(files, pair[0].next()));
        }
    }
    let open = |number: SegmentNumber| {
        files.open(&number.file_name()).map(|file| Found { number, file }).map_err(|e| io(files, "open", &e))
    };
    numbers.into_iter().map(open).collect()
}

/// The place in the list of the last segment that holds a frame.
fn last_begun(files: &dyn Files, journal: JournalId, found: &[Found]) -> Result<usize, DiskError> {
    for (at, Found { number, file }) in found.iter().enumerate().rev() {
        if scan::is_begun(&**file, journal, *number).map_err(|error| io(files, "read", &error))? {
            return Ok(at);
        }
    }
    Err(missing(files, found.last().map_or(FIRST_SEGMENT, |found| found.number)))
}

/// A file has its name only when it has its size, and never gets shorter: one that is could be taken for a
/// segment that was never begun. Options with larger segments must know of these.
fn check_size(files: &dyn Files, found: &Found, options: JournalOptions) -> Result<(), DiskError> {
    let size_bytes = found.file.size().map_err(|error| io(files, "read", &error))?;
    if size_bytes < options.segment_bytes {
        let problem = format!("it ends there, but every segment has {} bytes or more", options.segment_bytes);
        return Err(damaged(files, found.number, size_bytes, problem));
    }
    Ok(())
}

/// Reads a segment, which must be of this journal if it says whose it is.
fn read(files: &dyn Files, journal: JournalId, found: &Found) -> Result<Scan, DiskError> {
    let number = found.number;
    let scan = Scan::read(&*found.file, journal, number).map_err(|error| io(files, "read", &error))?;
    match scan.head() {
        Some(head) if head.journal != journal => {
            Err(damaged(files, number, 0, "it belongs to the log of another node".into()))
        }
        Some(head) if !head.is_readable() => {
            let problem =
                format!("its format {} is unknown to this program; start a newer one", head.version);
            Err(damaged(files, number, 0, problem))
        }
        Some(head) if head.segment == number && scan.size_bytes() < head.size_bytes => {
            let problem = format!("it ends there, but had {} bytes", head.size_bytes);
            Err(damaged(files, number, scan.size_bytes(), problem))
        }
        head if !scan.frames.is_empty() && head.is_none_or(|head| head.segment != number) => {
            Err(damaged(files, number, 0, "its head is not what was written there".into()))
        }
        _ => Ok(scan),
    }
}

/// What the last checkpoint says. It stands in the last segment, or in that one's first frame.
fn oldest_needed(files: &dyn Files, end: &Scan) -> Result<SegmentNumber, DiskError> {
    let mut replay = Replay::new(files.place());
    replay.take_values(end)?;
    let (values, _) = replay.finish();
    Ok(values.checkpoint.oldest)
}

/// Makes what was found durable, which a crash may have left in the system's memory only, and puts
/// a seal at the end, over what was begun and never finished.
fn settle(
    last: &dyn Blob,
    beyond: Option<&dyn Blob>,
    journal: JournalId,
    end: &Scan,
    next: FrameNumber,
) -> std::io::Result<()> {
    last.sync_data()?;
    if !end.is_sealed(next) {
        last.write_at(end.end_bytes(), &frame::seal(Salt::new(journal, end.number), next))?;
        last.sync_data()?;
    }
    if let Some(beyond) = beyond {
        beyond.write_at(ALIGN, &[0; frame::HEADER_BYTES])?;
        beyond.sync_data()?;
    }
    Ok(())
}

fn missing(files: &dyn Files, number: SegmentNumber) -> DiskError {
    damaged(files, number, 0, "the file is missing, or nothing in it can be read".into())
}

fn damaged(files: &dyn Files, number: SegmentNumber, offset_bytes: u64, problem: String) -> DiskError {
    DiskError::DamagedFile {
        file: format!("{}/{}", files.place(), number.file_name()),
        offset_bytes,
        problem,
    }
}

fn io(files: &dyn Files, action: &'static str, cause: &std::io::Error) -> DiskError {
    DiskError::Io { action, directory: files.place().to_owned(), cause: cause.to_string() }
}
