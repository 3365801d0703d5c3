//! The directory of snapshots: what is there, what is current, what may go.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use tripod_local::files;
use tripod_state::ids::FeatureLevel;
use tripod_state::{State, level};

use super::incoming::Incoming;
use super::stream::BlobStream;
use super::{FileId, Header, Part, SnapshotFile, write};
use crate::base::types::{LogId, SnapshotMeta};
use crate::disk::{Blob, Files, RealFiles, Work};
use crate::snapshot::{Snapshot, SnapshotTally};

/// Complete snapshots that stay. The older one serves a transfer that began before the newer.
const KEPT: usize = 2;

/// The snapshots of one node. Clones share it.
#[derive(Clone)]
pub(crate) struct SnapshotStore {
    files: Arc<dyn Files>,
    work: Work,
    /// The highest feature level that this build reads.
    level_max: FeatureLevel,
    current: Arc<Mutex<Option<(SnapshotMeta, SnapshotFile)>>>,
    /// The last entry of the current one.
    reach: watch::Sender<Option<LogId>>,
    incoming: Incoming,
    /// Makes the names of unfinished files unique.
    sequence: Arc<AtomicU64>,
    tally: SnapshotTally,
}

impl fmt::Debug for SnapshotStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotStore").field("place", &self.files.place()).finish_non_exhaustive()
    }
}

impl SnapshotStore {
    /// [`Self::open`] on a directory of the operating system, which is created if it does not exist. Blocks.
    pub(crate) fn open_directory(directory: &Path) -> io::Result<Self> {
        Self::open_directory_for(directory, level::NEWEST)
    }

    /// The same for a build that reads snapshots up to this level. Blocks.
    pub(crate) fn open_directory_for(directory: &Path, level_max: FeatureLevel) -> io::Result<Self> {
        files::create_dir_all(directory)?;
        File::open(directory.parent().expect("snapshots lie in the data directory"))?.sync_all()?;
        Self::open_for(Arc::new(RealFiles::open(directory)?), Work::Threads, level_max)
    }

    /// Drops unfinished files, and finds the newest snapshot that is whole. Blocks, also on the disk: an earlier life
    /// may have ended between the rename of a file and the sync of the directory, and the log is let go behind
    /// what is found here.
    #[cfg(test)]
    pub(crate) fn open(files: Arc<dyn Files>, work: Work) -> io::Result<Self> {
        Self::open_for(files, work, level::NEWEST)
    }

    /// [`Self::open`] for a build that reads snapshots up to this level.
    pub(crate) fn open_for(files: Arc<dyn Files>, work: Work, level_max: FeatureLevel) -> io::Result<Self> {
        let store = Self {
            files,
            work,
            level_max,
            current: Arc::default(),
            reach: watch::Sender::default(),
            incoming: Incoming::default(),
            sequence: Arc::default(),
            tally: SnapshotTally::default(),
        };
        for name in store.names(&["tmp", "part"])? {
            store.files.remove(&name)?;
        }
        store.files.sync_dir()?;
        for name in store.names(&["snap"])?.into_iter().rev() {
            let file = store.file(name);
            match file.verify() {
                Ok(header) => {
                    store.reach.send_replace(header.last_log_id);
                    *store.current.lock() = Some((header.meta(), file));
                    break;
                }
                Err(error) => tracing::warn!(%error, path = %file, "snapshot ignored"),
            }
        }
        Ok(store)
    }

    /// The newest snapshot.
    pub(crate) fn current(&self) -> Option<Snapshot> {
        let current = self.current.lock().clone();
        current.map(|(meta, snapshot)| Snapshot { meta, snapshot })
    }

    /// Whether the newest snapshot holds everything up to an entry.
    pub(crate) fn reaches(&self, last_log_id: Option<LogId>) -> bool {
        self.current.lock().as_ref().is_some_and(|(meta, _)| meta.last_log_id >= last_log_id)
    }

    /// The last entry of the newest snapshot, as it changes.
    pub(crate) fn reach(&self) -> watch::Receiver<Option<LogId>> {
        self.reach.subscribe()
    }

    /// The place of the one that comes from the leader.
    pub(crate) fn incoming(&self) -> &Incoming {
        &self.incoming
    }

    /// Counts what becomes of snapshots.
    pub(crate) fn tally(&self) -> &SnapshotTally {
        &self.tally
    }

    /// Who does what blocks here.
    pub(crate) fn work(&self) -> &Work {
        &self.work
    }

    fn file(&self, name: String) -> SnapshotFile {
        SnapshotFile { files: self.files.clone(), name, level_max: self.level_max }
    }

    /// Writes a snapshot and makes it the current one. Blocks, also on the disk.
    pub(crate) fn write(&self, header: &Header, state: &State) -> io::Result<Snapshot> {
        let name = final_name(header);
        write::write(&*self.files, &name, header, state)?;
        Ok(self.set_current(header, name))
    }

    /// An empty file for the next incoming snapshot. Blocks.
    pub(crate) fn begin_part(&self, id: Option<FileId>) -> io::Result<Part> {
        let (file, blob) = self.create_part()?;
        Ok(Part::new(id, file, blob, self.work.clone()))
    }

    fn create_part(&self) -> io::Result<(SnapshotFile, Arc<dyn Blob>)> {
        let number = self.sequence.fetch_add(1, Ordering::Relaxed);
        let name = format!("incoming-{number}.part");
        let blob = self.files.create(&name)?;
        Ok((self.file(name), blob))
    }

    /// Makes a complete, synced and verified file the current snapshot. Blocks, also on the disk.
    pub(crate) fn adopt(&self, header: &Header, file: &SnapshotFile) -> io::Result<()> {
        let name = final_name(header);
        if !Arc::ptr_eq(&file.files, &self.files) {
            // Whoever drives a state machine by hand gives one node's file to another.
            let (copy, blob) = self.create_part()?;
            io::copy(&mut BlobStream::new(file.open()?), &mut BlobStream::new(blob.clone()))?;
            blob.sync_data()?;
            return self.adopt(header, &copy);
        }
        if file.name != name {
            write::put_in_place(&*self.files, &file.name, &name)?;
        }
        self.set_current(header, name);
        Ok(())
    }

    fn set_current(&self, header: &Header, name: String) -> Snapshot {
        let meta = header.meta();
        let snapshot = Snapshot { meta: meta.clone(), snapshot: self.file(name) };
        let mut current = self.current.lock();
        // A build that was held up may end behind an installation of what came later.
        if current.as_ref().is_none_or(|(known, _)| known.last_log_id <= meta.last_log_id) {
            self.reach.send_replace(meta.last_log_id);
            *current = Some((meta, snapshot.snapshot.clone()));
        }
        drop(current);
        self.incoming.forget_up_to(header.last_log_id);
        if let Err(error) = self.prune() {
            // Too many files are a nuisance, not a fault.
            tracing::warn!(%error, "old snapshots not removed");
        }
        snapshot
    }

    fn prune(&self) -> io::Result<()> {
        let current = self.current.lock().as_ref().map(|(_, file)| file.name.clone());
        let others = self.names(&["snap"])?.into_iter().rev().filter(|name| Some(name) != current.as_ref());
        for name in others.skip(KEPT - 1) {
            self.files.remove(&name)?;
        }
        Ok(())
    }

    /// Files with one of the extensions, oldest first: names begin with the index.
    fn names(&self, extensions: &[&str]) -> io::Result<Vec<String>> {
        let mut found = self.files.list()?;
        found.retain(|name| name.rsplit_once('.').is_some_and(|(_, ending)| extensions.contains(&ending)));
        found.sort();
        Ok(found)
    }
}

fn final_name(header: &Header) -> String {
    let (index, term) = header.last_log_id.map_or((0, 0), |id| (id.index, id.leader_id.term));
    format!("{index:020}-{term:020}.snap")
}
