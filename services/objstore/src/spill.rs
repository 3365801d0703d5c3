//! Objects on disk. Files are a cache of this process: they are never flushed, and begin and end with it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};
use tripod_local::{Loose, PrivateDirectory, files};

use crate::error::Error;

/// Names of our files begin with it; nothing else in the directory is touched.
const PREFIX: &str = "tripod-spilled-";
const LOCK: &str = "tripod-objstore.lock";

/// The directory that objects are spilled to. One store has it at a time.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// In the names of this store's files: what is left of a store that was told to end may still remove its own.
    tag: u32,
    files: AtomicU64,
    bytes: Arc<AtomicU64>,
    bytes_max: u64,
    /// Held while this lives, or until it is given back.
    lock: File,
}

/// A spilled object. Its file goes with it.
#[derive(Debug)]
pub(crate) struct Spilled {
    path: PathBuf,
    pub(crate) size_bytes: u64,
    pub(crate) metadata_offset: u64,
    crc32c: u32,
    _reservation: DiskReservation,
}

/// Room that is taken on disk, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct DiskReservation {
    total: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for DiskReservation {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Drop for Spilled {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a spilled object's file could not be removed");
        }
    }
}

impl Directory {
    /// Makes the directory if need be, locks it, and removes what an earlier store left: a store that starts is a
    /// new store and has no objects.
    ///
    /// # Errors
    /// [`Error::SpillDirectory`], [`Error::SpillDirectoryTaken`].
    pub(crate) fn open(path: &Path, bytes_max: u64) -> Result<Self, Error> {
        let failed = |cause| Error::SpillDirectory { path: path.to_owned(), cause };
        // What is read back is believed. Builds before this one let others enter it, in a directory that they did not.
        let directory =
            PrivateDirectory::open(path, Loose::Tighten).map_err(|refused| failed(refused.into()))?;
        let path = directory.path();
        let lock = files::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK))
            .map_err(failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(Error::SpillDirectoryTaken { path: path.to_owned() });
            }
            Err(other) => return Err(failed(other.into())),
        }
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        let bytes = Arc::default();
        let tag = rand::random();
        Ok(Self { path: path.to_owned(), tag, files: AtomicU64::new(0), bytes, bytes_max, lock })
    }

    /// Lets another store have the directory, though tasks of this one may still be ending.
    pub(crate) fn unlock(&self) {
        if let Err(error) = flock(&self.lock, FlockOperation::Unlock) {
            tracing::warn!(path = %self.path.display(), %error, "a directory could not be given back");
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Room for so many bytes; `None` if the limit would be exceeded.
    pub(crate) fn reserve(&self, bytes: u64) -> Option<DiskReservation> {
        let fits = |now: u64| now.checked_add(bytes).filter(|then| *then <= self.bytes_max);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(DiskReservation { total: Arc::clone(&self.bytes), bytes })
    }

    /// Writes an object. Blocks.
    ///
    /// # Errors
    /// What the system says; nothing is left of the file.
    pub(crate) fn write(
        &self,
        bytes: &[u8],
        metadata_offset: u64,
        reservation: DiskReservation,
    ) -> io::Result<Spilled> {
        let name = format!("{PREFIX}{:08x}-{}", self.tag, self.files.fetch_add(1, Ordering::Relaxed));
        let path = self.path.join(name);
        let mut file = files::options().create_new(true).write(true).open(&path)?;
        let size_bytes = bytes.len() as u64;
        // From here on the file is removed whatever happens.
        let spilled = Spilled {
            path,
            size_bytes,
            metadata_offset,
            crc32c: crc32c::crc32c(bytes),
            _reservation: reservation,
        };
        file.write_all(bytes)?;
        Ok(spilled)
    }
}

/// Why a spilled object cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("its file on disk is damaged")]
    Damaged,
    #[error("its file on disk cannot be read: {0}")]
    System(#[from] io::Error),
}

impl Spilled {
    /// Reads the object back and checks it. Blocks.
    ///
    /// # Errors
    /// [`ReadError`].
    pub(crate) fn read(&self, mut write: impl FnMut(u64, &[u8]) -> io::Result<()>) -> Result<(), ReadError> {
        use std::os::unix::fs::FileExt as _;
        let file = File::open(&self.path)?;
        if file.metadata()?.len() != self.size_bytes {
            return Err(ReadError::Damaged);
        }
        let mut buffer = vec![0; 1 << 20];
        let (mut offset, mut crc) = (0, 0);
        while offset < self.size_bytes {
            let len = usize::try_from(self.size_bytes - offset).unwrap_or(usize::MAX).min(buffer.len());
            let part = &mut buffer[..len];
            file.read_exact_at(part, offset)?;
            crc = crc32c::crc32c_append(crc, part);
            write(offset, part)?;
            offset += len as u64;
        }
        if crc == self.crc32c { Ok(()) } else { Err(ReadError::Damaged) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(path)
            .expect("listed")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn spill(directory: &Directory, bytes: &[u8]) -> Spilled {
        let reservation = directory.reserve(bytes.len() as u64).expect("room");
        directory.write(bytes, 3, reservation).expect("written")
    }

    fn read(spilled: &Spilled) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        spilled.read(|_, part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
        Ok(bytes)
    }

    #[test]
    fn what_is_written_is_read_back_and_damage_is_seen() {
        let temporary = tempfile::tempdir().expect("a directory");
        let directory = Directory::open(temporary.path(), 100).expect("opened");
        let spilled = spill(&directory, b"0123456789");
        assert_eq!((read(&spilled).expect("whole"), directory.bytes()), (b"0123456789".to_vec(), 10));
        fs::write(&spilled.path, b"0123456780").expect("written");
        assert!(matches!(read(&spilled), Err(ReadError::Damaged)));
        fs::write(&spilled.path, b"012345678").expect("written");
        assert!(matches!(read(&spilled), Err(ReadError::Damaged)));
        drop(spilled);
        assert_eq!((names(temporary.path()), directory.bytes()), (vec![LOCK.to_owned()], 0));
    }

    #[test]
    fn the_limit_holds() {
        let temporary = tempfile::tempdir().expect("a directory");
        let directory = Directory::open(temporary.path(), 100).expect("opened");
        let reservation = directory.reserve(60).expect("room");
        assert!(directory.reserve(41).is_none() && directory.reserve(u64::MAX).is_none());
        drop(reservation);
        assert!(directory.reserve(100).is_some());
    }

    #[test]
    fn a_directory_has_one_store_and_is_emptied_of_spilled_objects_only() {
        let temporary = tempfile::tempdir().expect("a directory");
        fs::write(temporary.path().join("tripod-spilled-7"), b"old").expect("written");
        fs::write(temporary.path().join("other"), b"kept").expect("written");
        let first = Directory::open(temporary.path(), 100).expect("opened");
        assert_eq!(names(temporary.path()), ["other", LOCK]);
        assert!(matches!(Directory::open(temporary.path(), 100), Err(Error::SpillDirectoryTaken { .. })));
        drop(first);
        assert!(Directory::open(temporary.path(), 100).is_ok());
    }
}
