//! What the log asks of whatever keeps it: a [journal](crate::disk::journal), which asks the same of its
//! home.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::base::advice;
use crate::base::error::StartError;
use crate::base::stages::Stages;
use crate::base::types::{Entry, LogId, Vote};
use crate::disk::home::chunk::Damage;

/// A change of the stored log. A slice of them takes effect in order. In sled each of them is atomic, but for a
/// purge of many entries: they are gone from the first moment on, their bytes bit by bit.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// Consecutive entries behind the last one.
    Append(Vec<Entry>),
    Vote(Vote),
    /// A hint for the next start. Need not be durable.
    Committed(LogId),
    /// Drops every entry behind this one; all of them for `None`.
    TruncateAfter(Option<LogId>),
    /// Drops every entry up to this one. Need not be durable.
    Purge(LogId),
}

impl Change {
    /// Whether somebody waits for this change to be durable. A truncation is waited for by nobody:
    /// what overwrites it is an append, and that is.
    pub(crate) fn must_be_durable(&self) -> bool {
        match self {
            Self::Append(_) | Self::Vote(_) => true,
            Self::Committed(_) | Self::TruncateAfter(_) | Self::Purge(_) => false,
        }
    }
}

/// The single values of a stored log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    pub(crate) vote: Option<Vote>,
    pub(crate) committed: Option<LogId>,
    pub(crate) purged: Option<LogId>,
}

/// Keeps the log. Owned by the one writer thread; every call may block.
pub(crate) trait Disk: Send + 'static {
    /// Reads and verifies everything; gives each entry that is not purged to `each`, in order.
    fn load(&mut self, each: &mut dyn FnMut(Entry)) -> Result<Loaded, DiskError>;

    /// Stages changes. They are durable, and visible to readers, after the next [`Self::sync`]; they
    /// may be either before.
    fn write(&mut self, changes: &[Change]) -> Result<(), DiskError>;

    /// Makes everything staged so far durable, power loss included.
    fn sync(&mut self) -> Result<(), DiskError>;

    /// Called when nothing waits to be written: a chance for what nobody waits for. Says how soon it
    /// should be called again if nothing is written until then.
    fn rest(&mut self) -> Result<Option<Duration>, DiskError> {
        Ok(None)
    }

    /// Reads entries that have been written, from other threads.
    fn reader(&self) -> Arc<dyn OldEntries>;

    /// What times its flushes.
    fn stages(&self) -> Stages {
        Stages::default()
    }
}

/// Reads entries that are no longer in memory.
pub(crate) trait OldEntries: Send + Sync {
    /// Entries from `start` up to before `end`, until about `bytes_max` bytes are read, but at
    /// least one. Fewer, or none, if the log has been cut or purged meanwhile.
    fn read(&self, start: u64, end: u64, bytes_max: usize) -> Result<Vec<Entry>, DiskError>;

    /// Lets go of the storage, so that it can be opened again. Reads fail from now on.
    fn close(&self);
}

/// Why storage failed. The texts are for operators.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiskError {
    /// Another process has the directory open.
    #[error(
        "T3104 log-locked: another process uses the log in {directory}; \
         stop it, or give this node a data directory of its own ({cause})"
    )]
    Locked { directory: String, cause: String },
    /// Something that was durable once cannot be read any more.
    #[error(
        "T3101 log-damaged: the log in {directory} is damaged: entry {index} {problem}. A node must not vote on a \
         log that it cannot read to its end. {}",
        advice_beside(directory)
    )]
    Damaged { directory: String, index: u64, problem: String },
    /// [`Self::Damaged`], found where the entry cannot be named.
    #[error(
        "T3101 log-damaged: {file} is damaged at byte {offset_bytes}: {problem}. A node must not vote on a log \
         that it cannot read to its end. {}",
        advice_beside(parent(file))
    )]
    DamagedFile { file: String, offset_bytes: u64, problem: String },
    /// [`Self::Damaged`], as sled found it.
    #[error(
        "T3101 log-damaged: the log in {directory} is damaged: {problem}. A node must not vote on a log that it \
         cannot read to its end. {}",
        advice_beside(directory)
    )]
    DamagedHome { directory: String, problem: String },
    #[error(
        "T3102 log-io: cannot {action} the log in {directory}: {cause}; check the disk, its free space and permissions"
    )]
    Io { action: &'static str, directory: String, cause: String },
    #[error("the log is closed")]
    Closed,
}

/// What to do, for a directory that lies in the data directory.
fn advice_beside(directory: &str) -> String {
    advice::rejoin(Path::new(parent(directory)))
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(parent, _)| parent)
}

impl DiskError {
    pub(crate) fn damaged(directory: &str, damage: Damage) -> Self {
        Self::Damaged { directory: directory.to_owned(), index: damage.index, problem: damage.problem }
    }
}

impl From<DiskError> for StartError {
    fn from(error: DiskError) -> Self {
        Self::Storage(error.to_string())
    }
}

impl From<DiskError> for io::Error {
    fn from(error: DiskError) -> Self {
        Self::other(error)
    }
}
