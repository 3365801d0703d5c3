//! The directory of a store's files of mutable chunks. One store has it at a time.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};
use tripod_local::{Loose, PrivateDirectory, files};

/// Names of our files begin with it; nothing else in the directory is touched.
const PREFIX: &str = "tripod-mutable-";
const LOCK: &str = "tripod-mutable.lock";
/// The same of chunks that are put.
const PUT_PREFIX: &str = "tripod-put-";
/// Whose chunks they are.
const OWNER: &str = "tripod-mutable.cluster";
const OWNER_NEW: &str = "tripod-mutable.cluster-new";

/// Why a directory of mutable chunks cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    #[error(
        "the directory {path} for mutable chunks cannot be used: {cause}; next: pick one that can be written to with \
         --mutable-dir", path = .path.display()
    )]
    Unusable { path: PathBuf, cause: io::Error },
    #[error(
        "the directory {path} is used by another object store; next: end that one, or pick another directory with \
         --mutable-dir", path = .path.display()
    )]
    Taken { path: PathBuf },
}

/// Files that are there when it is opened, in the order in which they were begun.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) records: Vec<PathBuf>,
    pub(super) puts: Vec<PathBuf>,
}

/// The directory.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// Numbers of files that were given.
    next: AtomicU64,
    /// Held while this lives, or until it is given back.
    lock: File,
}

impl Directory {
    /// Makes the directory if need be, and locks it. Answers the files that are in it, too.
    ///
    /// # Errors
    /// [`DirectoryError`].
    pub(super) fn open(path: &Path) -> Result<(Self, Found), DirectoryError> {
        let failed = |cause| DirectoryError::Unusable { path: path.to_owned(), cause };
        let directory =
            PrivateDirectory::open(path, Loose::Tighten).map_err(|refused| failed(refused.into()))?;
        let path = directory.path();
        let lock = files::options().create(true).truncate(false).write(true).open(path.join(LOCK));
        let lock = lock.map_err(failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(DirectoryError::Taken { path: path.to_owned() });
            }
            Err(other) => return Err(failed(other.into())),
        }
        let (mut found, mut next) = (Found::default(), 0);
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            for (prefix, files) in [(PREFIX, &mut found.records), (PUT_PREFIX, &mut found.puts)] {
                if let Some(number) =
                    name.strip_prefix(prefix).and_then(|number| u64::from_str_radix(number, 16).ok())
                {
                    next = next.max(number.saturating_add(1));
                    files.push(entry.path());
                }
            }
        }
        found.records.sort();
        found.puts.sort();
        Ok((Self { path: path.to_owned(), next: AtomicU64::new(next), lock }, found))
    }

    /// A name that no file has.
    pub(super) fn fresh(&self) -> PathBuf {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.path.join(format!("{PREFIX}{number:016x}"))
    }

    /// The same for a chunk that is put.
    pub(super) fn fresh_put(&self) -> PathBuf {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.path.join(format!("{PUT_PREFIX}{number:016x}"))
    }

    /// Whether its chunks are those of that cluster; the first one that is named is. Blocks.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn belongs_to(&self, cluster: &str) -> io::Result<bool> {
        let owner = self.path.join(OWNER);
        match fs::read(&owner) {
            Ok(known) => Ok(known == cluster.as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let new = self.path.join(OWNER_NEW);
                let mut file = files::options().create(true).truncate(true).write(true).open(&new)?;
                file.write_all(cluster.as_bytes())?;
                file.sync_all()?;
                fs::rename(&new, &owner)?;
                self.sync()?;
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// What was made or removed in it is so after a crash, too. Blocks.
    pub(super) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    /// Lets another store have the directory, though calls may still be ending.
    pub(super) fn unlock(&self) {
        if let Err(error) = flock(&self.lock, FlockOperation::Unlock) {
            tracing::warn!(path = %self.path.display(), %error, "a directory could not be given back");
        }
    }
}
