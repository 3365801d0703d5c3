//! The directory of snapshots: what is there, what is current, what may go.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tripod_state::State;

use super::{Header, SnapshotFile, verify, write};
use crate::types::{Snapshot, SnapshotMeta};

/// Complete snapshots that stay. The older one serves a transfer that began before the newer.
const KEPT: usize = 2;

/// The snapshots of one node. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotStore {
    directory: Arc<Path>,
    current: Arc<Mutex<Option<(SnapshotMeta, PathBuf)>>>,
    /// Makes the names of unfinished files unique.
    sequence: Arc<AtomicU64>,
}

impl SnapshotStore {
    /// Opens or creates the directory, drops unfinished files, and finds the newest snapshot that is
    /// whole. Blocks.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        File::open(directory.parent().expect("snapshots lie in the data directory"))?.sync_all()?;
        let store = Self { directory: directory.into(), current: Arc::default(), sequence: Arc::default() };
        for path in store.files(&["tmp", "part"])? {
            fs::remove_file(path)?;
        }
        for path in store.files(&["snap"])?.into_iter().rev() {
            match verify(&path) {
                Ok(header) => {
                    *store.current.lock() = Some((header.meta(), path));
                    break;
                }
                Err(error) => tracing::warn!(%error, path = %path.display(), "snapshot ignored"),
            }
        }
        Ok(store)
    }

    /// The newest snapshot.
    pub(crate) fn current(&self) -> Option<Snapshot> {
        let current = self.current.lock().clone();
        current.map(|(meta, path)| Snapshot { meta, snapshot: SnapshotFile { path } })
    }

    /// Writes a snapshot and makes it the current one. Blocks, also on the disk.
    pub(crate) fn write(&self, header: &Header, state: &State) -> io::Result<Snapshot> {
        let path = self.final_path(header);
        write::write(&path, header, state)?;
        Ok(self.set_current(header, path))
    }

    /// Where the next incoming snapshot is received.
    pub(crate) fn part_path(&self) -> PathBuf {
        let number = self.sequence.fetch_add(1, Ordering::Relaxed);
        self.directory.join(format!("incoming-{number}.part"))
    }

    /// Makes a complete, synced and verified file the current snapshot. Blocks, also on the disk.
    pub(crate) fn adopt(&self, header: &Header, path: &Path) -> io::Result<()> {
        let target = self.final_path(header);
        if path != target {
            write::put_in_place(path, &target)?;
        }
        self.set_current(header, target);
        Ok(())
    }

    fn final_path(&self, header: &Header) -> PathBuf {
        let (index, term) = header.last_log_id.map_or((0, 0), |id| (id.index, id.leader_id.term));
        self.directory.join(format!("{index:020}-{term:020}.snap"))
    }

    fn set_current(&self, header: &Header, path: PathBuf) -> Snapshot {
        let meta = header.meta();
        let snapshot = Snapshot { meta: meta.clone(), snapshot: SnapshotFile { path: path.clone() } };
        *self.current.lock() = Some((meta, path));
        if let Err(error) = self.prune() {
            // Too many files are a nuisance, not a fault.
            tracing::warn!(%error, "old snapshots not removed");
        }
        snapshot
    }

    fn prune(&self) -> io::Result<()> {
        let current = self.current.lock().as_ref().map(|(_, path)| path.clone());
        let others = self.files(&["snap"])?.into_iter().rev().filter(|path| Some(path) != current.as_ref());
        for path in others.skip(KEPT - 1) {
            fs::remove_file(path)?;
        }
        Ok(())
    }

    /// Files with one of the extensions, oldest first: names begin with the index.
    fn files(&self, extensions: &[&str]) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for file in fs::read_dir(&self.directory)? {
            let path = file?.path();
            if path.extension().and_then(|e| e.to_str()).is_some_and(|e| extensions.contains(&e)) {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }
}
