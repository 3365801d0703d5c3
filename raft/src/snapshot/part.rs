//! A snapshot file that comes in, as far as it came.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{FileId, SnapshotFile};
use crate::disk::{Blob, Work};

/// An incoming file. It goes with its owner unless it was installed, and so renamed, before. Files of
/// gigabytes take their time to go, wherever their last owner is: that is left to whoever does what blocks.
pub(crate) struct Part {
    /// Absent: its sender cannot resume, so nobody will ask for it again.
    id: Option<FileId>,
    /// `None` only while it goes.
    file: Option<PartFile>,
    work: Work,
    received_bytes: u64,
}

impl Part {
    pub(crate) fn new(id: Option<FileId>, file: SnapshotFile, blob: Arc<dyn Blob>, work: Work) -> Self {
        let inner = Inner { file, blob, order: Mutex::new(()), spoiled: AtomicBool::new(false) };
        Self { id, file: Some(PartFile { inner: Arc::new(inner) }), work, received_bytes: 0 }
    }

    /// What can be done with it where blocking does no harm.
    pub(crate) fn file(&self) -> &PartFile {
        self.file.as_ref().expect("it is there until the part goes")
    }

    /// Bytes from the beginning of the file that are checked and written.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Counts a chunk that is checked and written.
    pub(crate) fn advance(&mut self, bytes: u64) {
        self.received_bytes += bytes;
    }

    /// Whether it is what came of that file, and nobody has seen the disk fail it.
    pub(super) fn is_sound(&self, id: &FileId) -> bool {
        self.id.as_ref() == Some(id) && !self.file().inner.spoiled.load(Ordering::SeqCst)
    }

    /// What it is, if it can be resumed.
    pub(super) fn id(&self) -> Option<&FileId> {
        self.id.as_ref()
    }

    /// Has it go, and waits for that.
    pub(super) async fn remove(mut self) {
        if let Some(file) = self.file.take() {
            // A panic there was told; the next start removes what is left.
            let _ = self.work.run(move || file.remove()).await;
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            self.work.detach(move || file.remove());
        }
    }
}

/// The file of a [`Part`]. Whoever waited for something that is done here may be gone when it has failed, and
/// a second attempt to sync may report a success that is none: so one thing is done at a time, and
/// after the first failure none. Clones are the same file.
#[derive(Clone)]
pub(crate) struct PartFile {
    inner: Arc<Inner>,
}

struct Inner {
    file: SnapshotFile,
    blob: Arc<dyn Blob>,
    order: Mutex<()>,
    spoiled: AtomicBool,
}

impl PartFile {
    /// Its name, and what reads it.
    pub(crate) fn snapshot(&self) -> &SnapshotFile {
        &self.inner.file
    }

    /// Writes a piece. Blocks.
    pub(crate) fn write_at(&self, offset_bytes: u64, bytes: &[u8]) -> io::Result<()> {
        self.attempt(|blob| blob.write_at(offset_bytes, bytes))
    }

    /// Makes everything durable. Blocks.
    pub(crate) fn sync_data(&self) -> io::Result<()> {
        self.attempt(|blob| blob.sync_data())
    }

    fn attempt(&self, what: impl FnOnce(&dyn Blob) -> io::Result<()>) -> io::Result<()> {
        let _alone = self.inner.order.lock();
        if self.inner.spoiled.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk failed what came of this snapshot before"));
        }
        what(&*self.inner.blob).inspect_err(|_| self.inner.spoiled.store(true, Ordering::SeqCst))
    }

    /// Gives up the name, and the bytes with the last owner. Blocks.
    fn remove(self) {
        let file = &self.inner.file;
        if let Err(error) = file.remove() {
            tracing::warn!(%error, path = %file, "incoming snapshot not removed");
        }
    }
}
