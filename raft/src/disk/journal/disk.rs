//! The journal and the home of the log behind it, as the one disk that the log store writes to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::base::failure::Failure;
use crate::base::stages::Stages;
use crate::base::types::{Entry, LogId};
use crate::disk::journal::engine::{Journal, JournalOptions, Progress};
use crate::disk::journal::frame::JournalId;
use crate::disk::journal::helper::{Hands, Helper};
use crate::disk::journal::home::{Broken, Home, HomeKeeper};
use crate::disk::journal::home_check::HomeCheck;
use crate::disk::journal::mover::{Move, MoveDone};
use crate::disk::journal::pool::{self, SpareDone, SpareOrder};
use crate::disk::journal::reader::JournalReader;
use crate::disk::journal::record::Checkpoint;
use crate::disk::journal::recovery;
use crate::disk::journal::space::Space;
use crate::disk::journal::state::LogValues;
use crate::disk::{Change, Disk, DiskError, Files, Loaded, OldEntries};

/// How often a disk that was full is tried again.
const FULL_RETRY: Duration = Duration::from_secs(1);
/// How often an idle journal looks whether its mover is done.
const MOVE_POLL: Duration = Duration::from_millis(100);
/// Bytes of entries that are read at a time while the log is loaded.
const LOAD_BYTES: usize = 4 << 20;

/// A journal, its home, and the helpers between them.
pub(crate) struct JournalDisk {
    journal: Journal,
    files: Arc<dyn Files>,
    spares: Helper<SpareOrder, Result<SpareDone, DiskError>>,
    home: HomeState,
    hands: Hands,
    failure: Failure,
    broken: Broken,
    space: Space,
}

/// Who has the home.
enum HomeState {
    /// Nobody yet: it was not read.
    Unread(Box<dyn Home>),
    Moving(Helper<Move, Result<MoveDone, DiskError>>),
    /// Reading it failed.
    Gone,
}

impl JournalDisk {
    /// Opens the journal in front of `home`, or puts one there. Blocks.
    ///
    /// # Errors
    /// [`DiskError`], if the journal cannot be proved whole.
    pub(crate) fn open(
        files: Arc<dyn Files>,
        mut home: Box<dyn Home>,
        options: JournalOptions,
        hands: Hands,
        new_id: JournalId,
        failure: Failure,
    ) -> Result<Self, DiskError> {
        let id = match home.journal()? {
            Some(id) => {
                // A process that ended here may have left this to the system's memory only; were it
                home.sync()?;
                id
            }
            None => {
                recovery::expect_unused(&*files)?;
                recovery::create(&*files, new_id, values_of(&mut *home)?, options)?;
                // From here on the home is not the whole log. Before it, the journal says nothing new.
                home.adopt(new_id)?;
                new_id
            }
        };
        let opened = recovery::recover(&*files, id, options)?;
        let (place, old) = (files.place().to_owned(), home.reader());
        let journal =
            Journal::new(opened, options, place.clone(), |index| JournalReader::new(id, index, old, place));
        let spares = spare_helper(files.clone(), options, hands, &failure)?;
        let (home, broken, space) = (HomeState::Unread(home), Broken::default(), Space::default());
        Ok(Self { journal, files, spares, home, hands, failure, broken, space })
    }

    /// Says when the disk is full; see [`Space`].
    pub(crate) fn space(&self) -> Space {
        self.space.clone()
    }

    /// Takes in what the helpers have done.
    fn collect(&mut self) -> Result<(), DiskError> {
        while let Some(done) = self.spares.take() {
            self.journal.spare_done(done?);
        }
        if let HomeState::Moving(mover) = &mut self.home {
            while let Some(done) = mover.take() {
                self.journal.move_done(done?);
            }
        }
        self.space.set_out_of_segments(self.journal.pool().is_out_of_space());
        Ok(())
    }

    /// Gives the helpers what is to be done next.
    fn dispatch(&mut self) {
        if let Some(order) = self.journal.next_spare() {
            self.spares.give(order);
        }
        if let HomeState::Moving(mover) = &mut self.home
            && let Some(order) = self.journal.next_move()
        {
            mover.give(order);
        }
    }

    /// Waits for a file. There is one at hand unless the disk is full or slower than the log grows.
    fn await_segment(&mut self) -> Result<(), DiskError> {
        while !self.journal.pool().has_ready() {
            if let Some(order) = self.journal.next_spare() {
                self.spares.give(order);
            }
            let done = self.spares.wait().ok_or(DiskError::Closed)??;
            if let SpareDone::NoSpace(error) = &done {
                if !self.journal.pool().has_retired() && !self.may_wait() {
                    return Err(io(&*self.files, "extend", error));
                }
                self.space.set_out_of_segments(true);
            }
            self.journal.spare_done(done);
        }
        Ok(())
    }

    /// Makes durable what was written.
    fn commit(&mut self) -> Result<(), DiskError> {
        self.collect()?;
        self.journal.prepare();
        loop {
            match self.journal.commit_next()? {
                Progress::Done => break,
                Progress::More => {}
                Progress::NeedsSegment => self.await_segment()?,
            }
        }
        self.dispatch();
        Ok(())
    }

    /// Does what nobody waits for; says when there may be more of it.
    fn tidy(&mut self) -> Result<Option<Duration>, DiskError> {
        self.collect()?;
        if self.journal.moves().has_outcome() {
            self.commit()?;
        }
        self.journal.seal()?;
        self.dispatch();
        // A burst that is over leaves more in the journal than should stay there.
        let moving = self.journal.moves().is_busy().then_some(MOVE_POLL);
        Ok(moving.or_else(|| self.space.is_low().then_some(FULL_RETRY)))
    }

    /// Whether the writer may wait until there is room again. A node without room is one whose disk does
    /// not answer: it loses nothing, and others lead. In a simulation time stands still meanwhile.
    fn may_wait(&self) -> bool {
        self.hands == Hands::Threads && !self.space.is_closing() && self.failure.get().is_none()
    }

    fn move_helper(
        &self,
        home: Box<dyn Home>,
    ) -> Result<Helper<Move, Result<MoveDone, DiskError>>, DiskError> {
        let work = {
            let (journal, failure) = (self.journal.reader().clone(), self.failure.clone());
            let (space, hands) = (self.space.clone(), self.hands);
            let broken = self.broken.clone();
            let mut home = HomeKeeper::new(home, broken.clone());
            move |order: Move| {
                // sled does not survive a full disk; what is not moved stays in the journal.
                while hands == Hands::Threads && space.is_low() && failure.get().is_none() {
                    if space.is_closing() {
                        return Err(DiskError::Closed);
                    }
                    std::thread::sleep(MOVE_POLL);
                }
                let done = broken.note(order.carry_out(home.open(), &journal));
                done.inspect_err(|error| failure.set(&error.to_string()))
            }
        };
        Helper::new(self.hands, "raft-move", self.failure.clone(), work).map_err(|error| DiskError::Io {
            action: "start the mover of",
            directory: "the data directory".into(),
            cause: error.to_string(),
        })
    }

    /// Gives the entries that are in the journal only.
    fn load_rest(&self, each: &mut dyn FnMut(Entry)) -> Result<(), DiskError> {
        let log = self.journal.durable();
        let end = log.last.map_or(0, |last| last.index + 1);
        // A log that begins with the journal need not begin at 0.
        let reader = self.journal.reader();
        let mut next = log.first_needed();
        if log.purged.is_none() && log.checkpoint.through.is_none() {
            next = reader.index.read().next_run(0).unwrap_or(end);
        }
        while next < end {
            let from = next;
            for entry in reader.read(next, end, LOAD_BYTES)? {
                if entry.log_id.index == next {
                    next += 1;
                    each(entry);
                }
            }
            if next == from {
                return Err(DiskError::Damaged {
                    directory: self.files.place().to_owned(),
                    index: next,
                    problem: "is missing: neither the journal nor its home holds it".into(),
                });
            }
        }
        Ok(())
    }
}

impl Disk for JournalDisk {
    fn load(&mut self, each: &mut dyn FnMut(Entry)) -> Result<Loaded, DiskError> {
        let HomeState::Unread(mut home) = std::mem::replace(&mut self.home, HomeState::Gone) else {
            return Err(DiskError::Closed);
        };
        let log = *self.journal.durable();
        let mut check = HomeCheck::new(&log, self.files.place());
        let held = home.load(&mut |entry| check.take(entry, &mut *each))?;
        if check.finish(&held)? {
            // What was moved without a checkpoint is in the journal as well, and is moved again.
            home.write(&[Change::TruncateAfter(log.checkpoint.through)])?;
        }
        self.journal.moves().home_purged = held.purged;
        self.load_rest(each)?;
        self.home = HomeState::Moving(self.move_helper(home)?);
        self.dispatch();
        Ok(Loaded { vote: log.vote, committed: log.committed, purged: log.purged })
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), DiskError> {
        changes.iter().for_each(|change| self.journal.stage(change));
        Ok(())
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        let done = self.commit();
        self.broken.note(done)
    }

    fn rest(&mut self) -> Result<Option<Duration>, DiskError> {
        let done = self.tidy();
        self.broken.note(done)
    }

    fn reader(&self) -> Arc<dyn OldEntries> {
        self.journal.reader().clone()
    }

    fn stages(&self) -> Stages {
        self.journal.stages().clone()
    }
}

/// The log as a home holds it that had no journal so far.
fn values_of(home: &mut dyn Home) -> Result<LogValues, DiskError> {
    let mut last: Option<LogId> = None;
    let held = home.load(&mut |entry| last = Some(entry.log_id))?;
    let last = last.or(held.purged);
    Ok(LogValues {
        vote: held.vote,
        committed: held.committed,
        purged: held.purged,
        last,
        checkpoint: Checkpoint { through: last, moved: None, oldest: recovery::FIRST_SEGMENT },
    })
}

fn spare_helper(
    files: Arc<dyn Files>,
    options: JournalOptions,
    hands: Hands,
    failure: &Failure,
) -> Result<Helper<SpareOrder, Result<SpareDone, DiskError>>, DiskError> {
    let place = files.clone();
    let work = {
        let failure = failure.clone();
        let mut full_since: Option<Instant> = None;
        move |order| {
            // Trying to fill a file on a full disk again and again would keep the disk busy.
            if let (Hands::Threads, SpareOrder::Make(_), Some(since)) = (hands, order, full_since) {
                std::thread::sleep(FULL_RETRY.saturating_sub(since.elapsed()));
            }
            let done = pool::carry_out(&*files, options.segment_bytes, order);
            full_since = matches!(done, Ok(SpareDone::NoSpace(_))).then(Instant::now);
            let done = done.map_err(|error| io(&*files, "prepare a segment of", &error));
            done.inspect_err(|error| failure.set(&error.to_string()))
        }
    };
    Helper::new(hands, "raft-spare", failure.clone(), work).map_err(|error| io(&*place, "open", &error))
}

fn io(files: &dyn Files, action: &'static str, cause: &std::io::Error) -> DiskError {
    DiskError::Io { action, directory: files.place().to_owned(), cause: cause.to_string() }
}
