//! The journal itself: takes changes, writes them as frames, and says what else is to be done. No
//! thread, and no clock but the one that times its flushes; whoever owns it calls it in this order:
//! [`Journal::stage`] for each group, then [`Journal::prepare`] and [`Journal::commit_next`] until nothing
//! is staged.

use std::sync::Arc;

use crate::base::stages::Stages;
use crate::disk::journal::frame::{
    self, ALIGN, FrameNumber, HEADER_BYTES, JournalId, Salt, SegmentHead, SegmentNumber,
};
use crate::disk::journal::index::{Index, RecordPosition};
use crate::disk::journal::mover::{Move, MoveDone};
use crate::disk::journal::moves::Moves;
use crate::disk::journal::pool::{Pool, Ready, SpareDone, SpareOrder};
use crate::disk::journal::reader::JournalReader;
use crate::disk::journal::record::Record;
use crate::disk::journal::staging::{Draft, Edit, Staging};
use crate::disk::journal::state::{LogValues, behind};
use crate::disk::{Blob, Change, DiskError};

/// Bytes of a segment that entries cannot use: the head, a seal, headers, and the records that
/// every first frame and every checkpoint add.
const RESERVED_BYTES: u64 = 1024;

/// How large a journal is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalOptions {
    /// Bytes of one segment. One that begins with an entry that does not fit is larger.
    pub(crate) segment_bytes: u64,
    /// Full segments that may be kept before entries are moved to the home.
    pub(crate) held_max: usize,
}

impl JournalOptions {
    fn body_max(self) -> usize {
        usize::try_from(self.segment_bytes - RESERVED_BYTES).expect("a segment fits memory")
    }
}

/// The segment in use.
pub(crate) struct Segment {
    pub(crate) number: SegmentNumber,
    pub(crate) file: Arc<dyn Blob>,
    /// Where the next frame begins; 0 before the first.
    pub(crate) end_bytes: u64,
    /// Bytes of the file.
    pub(crate) size_bytes: u64,
}

/// Everything that an open journal knows.
pub(crate) struct Opened {
    pub(crate) values: LogValues,
    pub(crate) current: Segment,
    pub(crate) next_frame: FrameNumber,
    pub(crate) pool: Pool,
    pub(crate) index: Index,
}

/// What [`Journal::commit_next`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Everything staged is durable.
    Done,
    /// One frame was made durable; ask again.
    More,
    /// A file is needed first; see [`Journal::next_spare`].
    NeedsSegment,
}

/// The journal of one node.
pub(crate) struct Journal {
    id: JournalId,
    options: JournalOptions,
    staging: Staging,
    /// The log as it is on disk.
    durable: LogValues,
    current: Segment,
    next_frame: FrameNumber,
    /// Whether a seal stands at the end.
    sealed: bool,
    pool: Pool,
    moves: Moves,
    reader: Arc<JournalReader>,
    place: String,
    buffer: Vec<u8>,
    stages: Stages,
}

impl Journal {
    pub(crate) fn new(
        opened: Opened,
        options: JournalOptions,
        place: String,
        reader: impl FnOnce(Index) -> JournalReader,
    ) -> Self {
        let reader = reader(opened.index);
        Self {
            id: reader.journal,
            options,
            staging: Staging::new(opened.values, options.body_max()),
            durable: opened.values,
            current: opened.current,
            next_frame: opened.next_frame,
            sealed: true,
            pool: opened.pool,
            moves: Moves::default(),
            reader: Arc::new(reader),
            place,
            buffer: Vec::new(),
            stages: Stages::default(),
        }
    }

    pub(crate) fn reader(&self) -> &Arc<JournalReader> {
        &self.reader
    }

    /// What times its flushes.
    pub(crate) fn stages(&self) -> &Stages {
        &self.stages
    }

    /// The log as it is on disk.
    pub(crate) fn durable(&self) -> &LogValues {
        &self.durable
    }

    pub(crate) fn moves(&mut self) -> &mut Moves {
        &mut self.moves
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Takes a change in. It is on disk after the next commit.
    pub(crate) fn stage(&mut self, change: &Change) {
        self.staging.stage(change);
    }

    /// Adds what the home has taken over, and which segments are no longer needed, to what is staged.
    pub(crate) fn prepare(&mut self) {
        let known = self.staging.values().checkpoint;
        let mut checkpoint = known;
        // A checkpoint behind a truncation would have to know what the truncation leaves of it.
        if !self.staging.holds_cut()
            && let Some((moved, through)) = self.moves.take_outcome()
        {
            checkpoint.through = Some(through);
            checkpoint.moved = Some(moved);
        }
        let needed = LogValues { checkpoint, ..*self.staging.values() }.first_needed();
        let oldest = self.reader.index.read().oldest_segment(needed).unwrap_or(self.current.number);
        checkpoint.oldest = checkpoint.oldest.max(oldest);
        if checkpoint != known {
            self.staging.stage_checkpoint(checkpoint);
        }
    }

    /// Writes the next staged frame and makes it durable.
    pub(crate) fn commit_next(&mut self) -> Result<Progress, DiskError> {
        let Some(draft) = self.staging.first() else { return Ok(Progress::Done) };
        let span = frame::aligned((HEADER_BYTES + draft.body.len()) as u64);
        if self.current.end_bytes > 0 && self.current.end_bytes + span + ALIGN > self.current.size_bytes {
            let Some(Ready { number, file }) = self.pool.take_ready() else {
                return Ok(Progress::NeedsSegment);
            };
            let size_bytes = file.size().map_err(|error| self.io("read", &error))?;
            self.pool.held.push_back(self.current.number);
            self.current = Segment { number, file, end_bytes: 0, size_bytes };
        }
        let draft = self.staging.pop().expect("it was looked at above");
        self.write(&draft)?;
        Ok(Progress::More)
    }

    fn write(&mut self, draft: &Draft) -> Result<(), DiskError> {
        let Segment { number, ref file, end_bytes, size_bytes } = self.current;
        let salt = Salt::new(self.id, number);
        let mut base = Vec::new();
        self.buffer.clear();
        if end_bytes == 0 {
            SegmentHead::new(self.id, number, size_bytes).encode(&mut self.buffer);
            Record::Base(self.durable).encode(&mut base);
        }
        let offset_bytes = end_bytes + self.buffer.len() as u64;
        frame::encode(&mut self.buffer, salt, self.next_frame, [&base, &draft.body]);
        file.write_at(end_bytes, &self.buffer).map_err(|error| self.io("write", &error))?;
        self.stages.flush_began();
        file.sync_data().map_err(|error| self.io("sync", &error))?;
        self.stages.flush_ended();
        let length = u32::try_from(base.len() + draft.body.len()).expect("the frame was encoded");
        let place =
            RecordPosition { segment: number, frame: self.next_frame, offset_bytes, length, record_at: 0 };
        self.current.end_bytes = end_bytes + self.buffer.len() as u64;
        self.next_frame = self.next_frame.next();
        self.sealed = false;
        self.take_effect(draft, place, base.len());
        // One large group must not hold its memory for ever.
        self.buffer.shrink_to(self.options.body_max());
        Ok(())
    }

    /// Lets readers see what has become durable, and gives up what is needed no more.
    fn take_effect(&mut self, draft: &Draft, place: RecordPosition, base_bytes: usize) {
        let before = std::mem::replace(&mut self.durable, draft.values);
        let mut index = self.reader.index.write();
        index.add_file(place.segment, self.current.file.clone());
        for edit in &draft.edits {
            match *edit {
                Edit::Add { first, last, record_at } => {
                    let record_at = u32::try_from(base_bytes + record_at).expect("within the frame");
                    index.add(first, last, RecordPosition { record_at, ..place });
                }
                Edit::CutAfter(keep) => {
                    index.cut(behind(keep));
                    self.moves.cut(keep, before.checkpoint.through);
                }
                Edit::DropBelow { first } => index.drop_below(first),
            }
        }
        if self.durable.checkpoint.through != before.checkpoint.through {
            index.home_end = behind(self.durable.checkpoint.through);
        }
        let oldest = self.durable.checkpoint.oldest;
        if oldest > before.checkpoint.oldest {
            index.retire_before(oldest);
            self.pool.retire_before(oldest);
        }
    }

    /// Writes, but does not flush, that everything up to here is durable. After a crash of the
    /// process, and after a loss of power as soon as the system has written it back, a damaged last
    /// frame cannot be taken for one that was never finished.
    pub(crate) fn seal(&mut self) -> Result<(), DiskError> {
        if self.sealed {
            return Ok(());
        }
        let seal = frame::seal(Salt::new(self.id, self.current.number), self.next_frame);
        let written = self.current.file.write_at(self.current.end_bytes, &seal);
        written.map_err(|error| self.io("write", &error))?;
        self.sealed = true;
        Ok(())
    }

    /// What is to be done with files, if anything.
    pub(crate) fn next_spare(&mut self) -> Option<SpareOrder> {
        self.pool.next_order()
    }

    pub(crate) fn spare_done(&mut self, done: SpareDone) {
        self.pool.done(done);
    }

    /// What is to be done in the home, if anything.
    pub(crate) fn next_move(&mut self) -> Option<Move> {
        if !self.moves.is_free() {
            return None;
        }
        let overdue = self.pool.overdue().filter(|_| !self.pool.is_out_of_space());
        let last = overdue.and_then(|segment| self.reader.index.read().last_within(segment));
        self.moves.next(&self.durable, last)
    }

    pub(crate) fn move_done(&mut self, done: MoveDone) {
        self.moves.done(done);
    }

    fn io(&self, action: &'static str, cause: &std::io::Error) -> DiskError {
        let directory = format!("{}/{}", self.place, self.current.number.file_name());
        DiskError::Io { action, directory, cause: cause.to_string() }
    }
}
