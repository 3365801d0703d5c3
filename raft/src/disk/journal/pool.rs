//! The segments that exist: in use, held for what they still say, ready for use, or no longer needed.
//!
//! Files are numbered without a gap, from the oldest to the last one that is ready. A new one is made
//! at the end, an old one is deleted at the beginning, or renamed from the beginning to the end: one
//! at a time, and the directory is durable before the next. So a number that is missing between two
//! others is a file that was lost.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use crate::disk::journal::frame::SegmentNumber;
use crate::disk::{Blob, Files};

/// The name of a file that is being made.
const UNFINISHED: &str = "new.tmp";
/// Bytes that are written at a time while a file is filled with zeros. A page: the system would keep
/// what is written at once as one piece, and count all of it as written again for every frame in it.
const FILL_BYTES: u64 = 4096;

/// Files beyond those that are held which are kept for use: the current one, the next one, and what
/// comes back at once after a purge is better kept than deleted and filled again.
const SPARE_MAX: usize = 3;

/// A file for the next segment.
pub(crate) struct Ready {
    pub(crate) number: SegmentNumber,
    pub(crate) file: Arc<dyn Blob>,
}

/// What a helper has to do with files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpareOrder {
    Make(SegmentNumber),
    Recycle { from: SegmentNumber, to: SegmentNumber },
    Delete(SegmentNumber),
}

/// What became of an order.
pub(crate) enum SpareDone {
    Ready(Ready),
    Deleted,
    /// The disk is full. The order may be given again.
    NoSpace(io::Error),
}

/// All segments but the one in use, by what they are for.
pub(crate) struct Pool {
    /// In order; still needed.
    pub(crate) held: VecDeque<SegmentNumber>,
    ready: VecDeque<Ready>,
    /// In order; all older than those that are held.
    retired: VecDeque<SegmentNumber>,
    /// The last file.
    highest: SegmentNumber,
    busy: bool,
    /// How many files may be held before entries are moved to the home.
    held_max: usize,
    no_space: bool,
}

impl Pool {
    pub(crate) fn new(
        held: VecDeque<SegmentNumber>,
        retired: VecDeque<SegmentNumber>,
        ready: VecDeque<Ready>,
        current: SegmentNumber,
        held_max: usize,
    ) -> Self {
        let highest = ready.back().map_or(current, |ready| ready.number);
        Self { held, ready, retired, highest, busy: false, held_max, no_space: false }
    }

    pub(crate) fn take_ready(&mut self) -> Option<Ready> {
        self.ready.pop_front()
    }

    /// Whether the next segment can be begun without new space on the disk.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether the last attempt to get another file found the disk full.
    pub(crate) fn is_out_of_space(&self) -> bool {
        self.no_space
    }

    /// Whether files wait to be used again.
    pub(crate) fn has_retired(&self) -> bool {
        !self.retired.is_empty()
    }

    /// The oldest segment, if so many are held that its entries should be moved to the home.
    pub(crate) fn overdue(&self) -> Option<SegmentNumber> {
        self.held.front().copied().filter(|_| self.held.len() > self.held_max)
    }

    /// Gives up the segments before this one.
    pub(crate) fn retire_before(&mut self, oldest: SegmentNumber) {
        while let Some(number) = self.held.pop_front_if(|number| *number < oldest) {
            self.retired.push_back(number);
        }
    }

    /// What to do next, if anything. [`Self::done`] must follow before this is asked again.
    pub(crate) fn next_order(&mut self) -> Option<SpareOrder> {
        if self.busy {
            return None;
        }
        let files = self.held.len() + self.retired.len() + self.ready.len();
        let order = match self.retired.pop_front() {
            // The next segment comes first: it also tells that the current one was there.
            Some(old) if self.has_ready() && files >= self.held_max + SPARE_MAX => SpareOrder::Delete(old),
            Some(from) => SpareOrder::Recycle { from, to: self.highest.next() },
            None if self.ready.is_empty() => SpareOrder::Make(self.highest.next()),
            None => return None,
        };
        self.busy = true;
        Some(order)
    }

    pub(crate) fn done(&mut self, done: SpareDone) {
        self.busy = false;
        self.no_space = matches!(done, SpareDone::NoSpace(_));
        if let SpareDone::Ready(ready) = done {
            self.highest = ready.number;
            self.ready.push_back(ready);
        }
    }
}

/// Carries out an order.
///
/// # Errors
/// Anything but a full disk, which is a [`SpareDone`].
pub(crate) fn carry_out(files: &dyn Files, segment_bytes: u64, order: SpareOrder) -> io::Result<SpareDone> {
    match order {
        SpareOrder::Make(number) => match make(files, number, segment_bytes, &[]) {
            Ok(file) => Ok(SpareDone::Ready(Ready { number, file })),
            Err(error) if is_full(&error) => {
                files.remove(UNFINISHED)?;
                Ok(SpareDone::NoSpace(error))
            }
            Err(error) => Err(error),
        },
        SpareOrder::Recycle { from, to } => {
            let file = files.open(&from.file_name())?;
            if file.size()? > segment_bytes {
                file.set_len(segment_bytes)?;
                file.sync_data()?;
            }
            files.rename(&from.file_name(), &to.file_name())?;
            files.sync_dir()?;
            Ok(SpareDone::Ready(Ready { number: to, file }))
        }
        SpareOrder::Delete(number) => {
            files.remove(&number.file_name())?;
            files.sync_dir()?;
            Ok(SpareDone::Deleted)
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Makes a file that begins with `content` and is zero behind it. Every block is written, so that a
/// later flush of data has no block to allocate and no size to change.
pub(crate) fn make(
    files: &dyn Files,
    number: SegmentNumber,
    segment_bytes: u64,
    content: &[u8],
) -> io::Result<Arc<dyn Blob>> {
    let file = files.create(UNFINISHED)?;
    file.write_at(0, content)?;
    let zeros = vec![0; usize::try_from(FILL_BYTES.min(segment_bytes)).expect("a page fits memory")];
    let mut at = content.len() as u64;
    while at < segment_bytes {
        let bytes = FILL_BYTES.min(segment_bytes - at);
        file.write_at(at, &zeros[..usize::try_from(bytes).expect("at most the buffer")])?;
        at += bytes;
    }
    file.sync_data()?;
    files.rename(UNFINISHED, &number.file_name())?;
    files.sync_dir()?;
    Ok(file)
}

/// Removes what an interrupted [`make`] left.
pub(crate) fn remove_unfinished(files: &dyn Files) -> io::Result<()> {
    if files.list()?.iter().any(|name| name == UNFINISHED) {
        files.remove(UNFINISHED)?;
    }
    Ok(())
}
