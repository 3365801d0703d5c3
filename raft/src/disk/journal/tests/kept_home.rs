//! When the home of the log is closed, and when it is better left alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::machine::SMALL;
use crate::base::failure::Failure;
use crate::base::test_entries::entries;
use crate::base::types::Entry;
use crate::disk::journal::JournalDisk;
use crate::disk::journal::frame::JournalId;
use crate::disk::journal::helper::Hands;
use crate::disk::journal::home::Home;
use crate::disk::journal::simulated::{Medium, SimFiles, SimHome};
use crate::disk::{Change, Disk, DiskError, Loaded, OldEntries};

/// A home that says when it is closed.
struct Watched {
    home: SimHome,
    closed: Arc<AtomicBool>,
}

impl Disk for Watched {
    fn load(&mut self, each: &mut dyn FnMut(Entry)) -> Result<Loaded, DiskError> {
        self.home.load(each)
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), DiskError> {
        self.home.write(changes)
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        self.home.sync()
    }

    fn reader(&self) -> Arc<dyn OldEntries> {
        self.home.reader()
    }
}

impl Home for Watched {
    fn journal(&self) -> Result<Option<JournalId>, DiskError> {
        self.home.journal()
    }

    fn adopt(&mut self, journal: JournalId) -> Result<(), DiskError> {
        self.home.adopt(journal)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

/// A journal and a home, each on a disk of its own.
struct Node {
    disk: JournalDisk,
    journal: Medium,
    home: Medium,
    closed: Arc<AtomicBool>,
}

fn start() -> Node {
    let (journal, home) = (Medium::default(), Medium::default());
    let closed = Arc::<AtomicBool>::default();
    let watched = Box::new(Watched { home: SimHome::new(home.clone()), closed: closed.clone() });
    let files = Arc::new(SimFiles::new(journal.clone(), "sim/journal"));
    let opened = JournalDisk::open(files, watched, SMALL, Hands::Inline, JournalId(7), Failure::new());
    let mut disk = opened.unwrap();
    disk.load(&mut |_| ()).unwrap();
    Node { disk, journal, home, closed }
}

impl Node {
    /// Appends and commits until most of it is in the home, or something fails.
    fn grow(&mut self) -> Result<(), DiskError> {
        for first in (0..300).step_by(3) {
            let new = entries(1, first..first + 3, 100);
            let committed = new[2].log_id;
            self.disk.write(&[Change::Append(new), Change::Committed(committed)])?;
            self.disk.sync()?;
            self.disk.rest()?;
        }
        Ok(())
    }

    /// Ends it; says whether its home was closed.
    fn closes(self) -> bool {
        drop(self.disk);
        self.closed.load(Ordering::SeqCst)
    }
}

#[test]
fn the_home_is_closed_with_the_log() {
    let mut node = start();
    node.grow().unwrap();
    assert!(node.closes());
}

/// sled would flush once more, to the same disk, and panic.
#[test]
fn after_a_failure_of_the_journal_the_home_is_left_alone() {
    let mut node = start();
    node.journal.crash_at(node.journal.count() + 20);
    assert!(node.grow().is_err());
    assert!(!node.closes());
}

#[test]
fn after_a_failure_of_its_own_the_home_is_left_alone() {
    let mut node = start();
    node.home.crash_at(node.home.count() + 1);
    assert!(node.grow().is_err());
    assert!(!node.closes());
}
