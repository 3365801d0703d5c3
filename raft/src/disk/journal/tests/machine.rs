//! A simulated node with a journal: it can be driven, crashed, and started again.

use std::sync::Arc;

use super::oracle::{Log, Step};
use crate::base::failure::Failure;
use crate::base::types::Entry;
use crate::disk::journal::JournalDisk;
use crate::disk::journal::engine::JournalOptions;
use crate::disk::journal::frame::JournalId;
use crate::disk::journal::helper::Hands;
use crate::disk::journal::simulated::{Loss, Medium, SimFiles, SimHome};
use crate::disk::journal::space::Space;
use crate::disk::{Change, Disk as _, DiskError};

/// So small that a few entries fill a segment, and that the home is used.
pub(super) const SMALL: JournalOptions = JournalOptions { segment_bytes: 2048, held_max: 1 };

/// Disks, and what was promised about them.
pub(super) struct Machine {
    pub(super) medium: Medium,
    pub(super) files: SimFiles,
    pub(super) home: SimHome,
    disk: Option<JournalDisk>,
    /// What was acknowledged.
    pub(super) acked: Log,
    /// What was handed over since.
    pub(super) pending: Vec<Change>,
}

impl Machine {
    pub(super) fn new() -> Self {
        let medium = Medium::default();
        let (files, home) = (SimFiles::new(medium.clone(), "sim/journal"), SimHome::new(medium.clone()));
        Self { medium, files, home, disk: None, acked: Log::default(), pending: Vec::new() }
    }

    /// Starts the node on what the disks hold; gives the log that it finds.
    pub(super) fn start(&mut self) -> Result<Log, DiskError> {
        let (files, home) = (Arc::new(self.files.clone()), Box::new(self.home.clone()));
        let mut disk = JournalDisk::open(files, home, SMALL, Hands::Inline, JournalId(7), Failure::new())?;
        let mut entries: Vec<Entry> = Vec::new();
        let values = disk.load(&mut |entry| entries.push(entry))?;
        self.disk = Some(disk);
        let indexes: Vec<u64> = entries.iter().map(|entry| entry.log_id.index).collect();
        let entries = entries.into_iter().map(|entry| (entry.log_id.index, entry)).collect();
        let log = Log { entries, values };
        let begin = values.purged.map_or_else(|| indexes.first().copied().unwrap_or(0), |id| id.index + 1);
        assert!(indexes.iter().copied().eq(begin..begin + indexes.len() as u64), "a hole in {indexes:?}");
        Ok(log)
    }

    fn disk(&mut self) -> &mut JournalDisk {
        self.disk.as_mut().expect("the machine was started")
    }

    pub(super) fn space(&mut self) -> Space {
        self.disk().space()
    }

    /// One group, as the writer handles it.
    pub(super) fn group(&mut self, changes: &[Change]) -> Result<(), DiskError> {
        self.pending.extend_from_slice(changes);
        self.disk().write(changes)?;
        if changes.iter().any(Change::must_be_durable) {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        self.disk().sync()?;
        for change in std::mem::take(&mut self.pending) {
            self.acked.apply(&change);
        }
        Ok(())
    }

    pub(super) fn rest(&mut self) -> Result<(), DiskError> {
        self.disk().rest().map(|_| ())
    }

    /// Stops the node as its writer does.
    pub(super) fn stop(&mut self) -> Result<(), DiskError> {
        self.sync()?;
        self.rest()?;
        self.disk = None;
        Ok(())
    }

    pub(super) fn take(&mut self, step: &Step) -> Result<(), DiskError> {
        match step {
            Step::Group(changes) => self.group(changes),
            Step::Rest => self.rest(),
            Step::Reopen => {
                self.stop()?;
                let found = self.start()?;
                assert_eq!(found, self.acked, "after a stop");
                Ok(())
            }
        }
    }

    /// Everything that can be read while the node runs. Staged changes may or may not be in it.
    pub(super) fn readable(&mut self) -> Vec<Entry> {
        let first = self.acked.values.purged.map_or(0, |id| id.index + 1);
        let first = self.acked.entries.keys().next().copied().unwrap_or(first);
        let end = self.acked.last().map_or(0, |id| id.index + 1);
        self.disk().reader().read(first, end, usize::MAX).unwrap()
    }

    /// The machine that starts after this one has crashed.
    pub(super) fn after_crash(&self, loss: Loss) -> Self {
        let medium = Medium::default();
        Self {
            files: self.files.after_crash(medium.clone(), loss),
            home: self.home.after_crash(medium.clone(), loss),
            medium,
            disk: None,
            acked: self.acked.clone(),
            pending: self.pending.clone(),
        }
    }
}
