//! The Raft log: a bounded tail in memory, everything on disk behind one writer thread.
//!
//! openraft calls [`LogStore`]; it changes the [`tail`] at once, so that what was appended can be
//! read, and queues the change for the [`writer`]. The writer hands groups of changes to a
//! [`Disk`]: the [journal](crate::disk::journal).

mod flushes;
mod tail;
mod weights;
mod writer;
mod writer_task;

#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use openraft::{OptionalSend, alias};
use parking_lot::RwLock;
use tokio::sync::oneshot;

use tripod_state::planted::{Bug, is_planted};

use crate::base::failure::Failure;
use crate::base::observer::LogLine;
use crate::base::stages::Stages;
use crate::base::types::{Entry, LogId, Types, Vote};
use crate::disk::{Change, Disk, DiskError, OldEntries, Work};

use tail::{EntrySource, Tail};
use writer::{Waiter, Writer};

pub(crate) use flushes::Flushes;

/// Bytes of entries kept in memory. A follower that lags further is served from disk.
const TAIL_BYTES_MAX: usize = 8 << 20;
/// Bytes of one message to a follower: far below the transport's limit, and small enough that a
/// heartbeat's worth of time does not pass while it is encoded.
const REPLICATION_BYTES_MAX: usize = 1 << 20;

/// The log. Clones are the same log.
#[derive(Clone)]
pub(crate) struct LogStore {
    tail: Arc<RwLock<Tail>>,
    old: Arc<dyn OldEntries>,
    writer: Writer,
    work: Work,
    stages: Stages,
}

impl LogStore {
    /// Reads and verifies the log, and starts its writer, a thread. Blocks.
    #[cfg(test)]
    pub(crate) fn open(disk: impl Disk, failure: Failure) -> Result<Self, DiskError> {
        Self::open_bounded(disk, failure, TAIL_BYTES_MAX)
    }

    /// [`Self::open`], with another bound for the bytes of entries kept in memory.
    #[cfg(test)]
    pub(crate) fn open_bounded(
        disk: impl Disk,
        failure: Failure,
        tail_bytes: usize,
    ) -> Result<Self, DiskError> {
        Self::open_with(disk, failure, tail_bytes, Work::Threads)
    }

    /// Reads and verifies the log, and starts its writer. Blocks.
    pub(crate) fn open_in(disk: impl Disk, failure: Failure, work: Work) -> Result<Self, DiskError> {
        Self::open_with(disk, failure, TAIL_BYTES_MAX, work)
    }

    fn open_with(
        mut disk: impl Disk,
        failure: Failure,
        tail_bytes: usize,
        work: Work,
    ) -> Result<Self, DiskError> {
        let mut tail = Tail::new(tail_bytes);
        let mut lines = Vec::new();
        let loaded = disk.load(&mut |entry| {
            if let Work::Inline(_) = work {
                lines.push(LogLine::of(&entry));
            }
            tail.push_loaded(entry);
        })?;
        if let Work::Inline(disk) = &work {
            disk.note_start(lines.into_iter());
        }
        tail.finish_load(loaded);
        let (old, stages) = (disk.reader(), disk.stages());
        let tail = Arc::new(RwLock::new(tail));
        let started = Writer::start(Box::new(disk), tail.clone(), failure, &work);
        let writer = started.map_err(|error| DiskError::Io {
            action: "start the writer of",
            directory: "the data directory".into(),
            cause: error.to_string(),
        })?;
        Ok(Self { tail, old, writer, work, stages })
    }

    /// Whether nothing was ever stored: no vote, no entry.
    pub(crate) fn is_pristine(&self) -> bool {
        let tail = self.tail.read();
        tail.vote.is_none() && tail.last().is_none()
    }

    /// What the writer waits for at the moment.
    pub(crate) fn flushes(&self) -> &Flushes {
        self.writer.flushes()
    }

    /// What times the way of entries through the log.
    pub(crate) fn stages(&self) -> &Stages {
        &self.stages
    }

    /// The vote that is stored.
    pub(crate) fn vote(&self) -> Option<Vote> {
        self.tail.read().vote
    }

    /// The same for a leader that asks whether it still leads. It was durable, and shows here, before any candidate or
    /// leader was told of it: whoever was elected by this node is in what it tells from then on.
    pub(crate) fn told_vote(&self) -> Option<Vote> {
        let is_stale =
            is_planted(Bug::StaleVote) || matches!(&self.work, Work::Inline(disk) if disk.has_stale_votes());
        let tail = self.tail.read();
        if is_stale { tail.first_vote } else { tail.vote }
    }

    /// The last entry, also if it was given up for a snapshot.
    pub(crate) fn last(&self) -> Option<LogId> {
        self.tail.read().last()
    }

    /// The last entry that was given up for a snapshot.
    pub(crate) fn purged(&self) -> Option<LogId> {
        self.tail.read().purged
    }

    /// The first entry from which on to `upto`, that one included, there are at most so many bytes.
    pub(crate) fn first_within(&self, upto: u64, bytes_max: u64) -> u64 {
        self.tail.read().first_within(upto, bytes_max)
    }

    /// Cuts off what stands beside a snapshot: entries of another leader at its last index and behind. They were
    /// never committed, since what the snapshot holds there was; a power cut has kept them because the snapshot was
    /// durable before the log had been cut. The engine takes such a log for damage. Gives whether there were any.
    ///
    /// # Errors
    /// The log cannot be read, or is closed.
    pub(crate) async fn cut_beside(&mut self, snapshot: LogId) -> io::Result<bool> {
        let (purged, last) = {
            let tail = self.tail.read();
            (tail.purged, tail.last())
        };
        let covered = purged.is_some_and(|purged| purged.index >= snapshot.index);
        if covered || last.is_none_or(|last| last.index < snapshot.index) {
            return Ok(false);
        }
        let first = purged.map_or(0, |purged| purged.index + 1).max(snapshot.index.saturating_sub(1));
        let found = self.try_get_log_entries(first..=snapshot.index).await?;
        let beside = found.last().map(|entry| entry.log_id).filter(|id| id.index == snapshot.index);
        // A later leader's entry there would be damage: it is left for the engine to refuse.
        if beside.is_none_or(|beside| beside >= snapshot) {
            return Ok(false);
        }
        let before = found.first().map(|entry| entry.log_id).filter(|id| id.index < snapshot.index);
        self.truncate_after(before.or(purged)).await?;
        Ok(true)
    }

    /// Makes everything durable and lets go of the files. Later calls fail.
    pub(crate) async fn stop(&self) {
        let writer = self.writer.clone();
        writer.stop_task().await;
        if let Err(error) = self.work.run(move || writer.stop()).await {
            tracing::error!(%error, "closing the log panicked");
        }
    }

    /// [`Self::stop`] from where blocking does no harm, for a log whose writer is a thread.
    pub(crate) fn close(&self) {
        self.writer.stop();
    }

    /// Entries of a range of indexes, from memory or disk, until about `bytes_max` bytes.
    async fn read(&self, start: u64, end: u64, bytes_max: usize) -> io::Result<Vec<Entry>> {
        let mut found = Vec::new();
        let mut next = start;
        loop {
            let place = self.tail.read().range(next, end, bytes_max);
            let (start, upto) = match place {
                EntrySource::Memory(entries) if found.is_empty() => return Ok(entries),
                EntrySource::Memory(entries) => {
                    found.extend(entries);
                    return Ok(found);
                }
                EntrySource::Storage { start, end } => (start, end),
            };
            let old = self.old.clone();
            let entries = self.work.run(move || old.read(start, upto, bytes_max)).await??;
            let Some(last) = entries.last() else { return Ok(found) };
            next = last.log_id.index + 1;
            found.extend(entries);
            if bytes_max < usize::MAX {
                return Ok(found);
            }
        }
    }
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> io::Result<Vec<Entry>> {
        let start = match range.start_bound() {
            Bound::Included(index) => *index,
            Bound::Excluded(index) => index + 1,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(index) => index.saturating_add(1),
            Bound::Excluded(index) => *index,
            Bound::Unbounded => u64::MAX,
        };
        self.read(start, end, usize::MAX).await
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        self.read(start, end, REPLICATION_BYTES_MAX).await
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        Ok(self.tail.read().vote)
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> io::Result<LogState<Types>> {
        let tail = self.tail.read();
        Ok(LogState { last_purged_log_id: tail.purged, last_log_id: tail.last() })
    }

    async fn get_log_reader(&mut self) -> Self::LogReader {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        let (done, durable) = oneshot::channel();
        self.writer.send(Change::Vote(*vote), Waiter::Vote(done))?;
        durable.await.map_err(|_| io::Error::from(DiskError::Closed))??;
        self.tail.write().vote = Some(*vote);
        Ok(())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        // A hint for the next start, which the writer picks up when it has something to write anyhow:
        // waking it for every commit would delay the next append.
        self.tail.write().committed = committed;
        Ok(())
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        Ok(self.tail.read().committed)
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> io::Result<()>
    where
        I: IntoIterator<Item = alias::EntryOf<Types>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        let appended = self.tail.write().append(&entries);
        appended.map_err(|expected| {
            io::Error::other(format!("an append must continue the log at index {expected}"))
        })?;
        self.stages.appended(&entries);
        self.writer.send(Change::Append(entries), Waiter::Append(callback))
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> io::Result<()> {
        self.tail.write().truncate_after(last);
        self.writer.send(Change::TruncateAfter(last), Waiter::Nobody)
    }

    async fn purge(&mut self, upto: LogId) -> io::Result<()> {
        self.tail.write().purge(upto);
        self.writer.send(Change::Purge(upto), Waiter::Nobody)
    }
}
