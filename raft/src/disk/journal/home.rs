//! Where the entries live in the end. The journal asks no more of it than this, so that a test can
//! put something in its place which loses what was not flushed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use crate::disk::journal::frame::JournalId;
use crate::disk::{Disk, DiskError, MetaKey, SledDisk};

/// A home of the log. It remembers which journal stands in front of it: from then on it is not the
/// whole log, and must not be taken for it.
pub(crate) trait Home: Disk {
    /// The journal that continues this log, if one was ever put in front of it.
    fn journal(&self) -> Result<Option<JournalId>, DiskError>;

    /// Remembers the journal, durably.
    fn adopt(&mut self, journal: JournalId) -> Result<(), DiskError>;
}

/// How the journal's id is stored.
#[derive(Serialize, Deserialize)]
struct Adopted {
    journal: u128,
}

impl Home for SledDisk {
    fn journal(&self) -> Result<Option<JournalId>, DiskError> {
        let adopted: Option<Adopted> = self.get(MetaKey::Journal)?;
        Ok(adopted.map(|adopted| JournalId(adopted.journal)))
    }

    fn adopt(&mut self, journal: JournalId) -> Result<(), DiskError> {
        self.put(MetaKey::Journal, &Adopted { journal: journal.0 })
    }
}

/// Whether the disk has failed. Clones tell the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Broken(Arc<AtomicBool>);

impl Broken {
    /// Passes an outcome on, and remembers if it is that of a disk that failed.
    pub(crate) fn note<T>(&self, outcome: Result<T, DiskError>) -> Result<T, DiskError> {
        if matches!(&outcome, Err(error) if !matches!(error, DiskError::Closed)) {
            self.0.store(true, Ordering::SeqCst);
        }
        outcome
    }
}

/// Holds a home, and does not close it once the disk has failed.
///
/// A sled that is dropped writes and flushes what it still has in memory, and panics if the disk refuses: an
/// operator would see the panic of a thread behind the one error that tells what to do. Nothing is lost by
/// not closing it, as the home is asked for no more than was flushed, and the journal holds the rest. Its
/// memory and its lock go with the process, which is about to end.
pub(crate) struct HomeKeeper {
    /// `None` only while it is being dropped.
    home: Option<Box<dyn Home>>,
    broken: Broken,
}

impl HomeKeeper {
    pub(crate) fn new(home: Box<dyn Home>, broken: Broken) -> Self {
        Self { home: Some(home), broken }
    }

    pub(crate) fn open(&mut self) -> &mut dyn Home {
        &mut **self.home.as_mut().expect("it is there until the drop")
    }
}

impl Drop for HomeKeeper {
    fn drop(&mut self) {
        if self.broken.0.load(Ordering::SeqCst) {
            std::mem::forget(self.home.take());
        }
    }
}
