//! A copy of a node's log, for as long as somebody looks at it.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tripod_local::files;

use super::{Error, unreadable};

/// The copy. It goes with this value.
pub(super) struct Scratch {
    data: PathBuf,
    copy: PathBuf,
    /// Holds sled's lock, shared: no node starts on the directory meanwhile.
    _lock: File,
}

impl Scratch {
    /// Copies log and journal of `data` to a new directory below `place`.
    pub(super) fn of(data: &Path, place: &Path) -> Result<Self, Error> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let lock = lock(data)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let copy = place.join(format!("tripod-doctor-{}-{number}", std::process::id()));
        files::create_dir(&copy).map_err(|error| no_room(&copy, &error))?;
        let scratch = Self { data: data.to_owned(), copy, _lock: lock };
        for part in ["log", "journal"] {
            copy_tree(&data.join(part), &scratch.copy.join(part))?;
        }
        Ok(scratch)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.copy.join("log")
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.copy.join("journal")
    }

    /// The text with the original's path in place of the copy's.
    pub(super) fn named_as_original(&self, text: &str) -> String {
        text.replace(&self.copy.display().to_string(), &self.data.display().to_string())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.copy) {
            tracing::warn!(%error, place = %self.copy.display(), "the copy is not removed");
        }
    }
}

/// Takes the lock that a running node holds on its log.
fn lock(data: &Path) -> Result<File, Error> {
    let place = data.join("log").join("db");
    let file = File::open(&place).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Error::NoData(format!(
            "T5302 doctor-no-data: there is no log in {}; name the directory that the node has as --data",
            data.display()
        )),
        _ => unreadable(&place, &error),
    })?;
    match file.try_lock_shared() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Running(format!(
            "T5301 doctor-running: a node uses {}; stop it first, or see `tripod status`",
            data.display()
        ))),
        Err(TryLockError::Error(error)) => Err(unreadable(&place, &error)),
    }
}

/// Copies files and directories; a part that is missing is left out.
fn copy_tree(from: &Path, to: &Path) -> Result<(), Error> {
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(from, &error)),
    };
    files::create_dir(to).map_err(|error| no_room(to, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(from, &error))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(|error| unreadable(&source, &error))?;
        if kind.is_dir() {
            copy_tree(&source, &target)?;
        } else {
            copy_file(&source, &target)?;
        }
    }
    Ok(())
}

/// Not with the rights of the source: what only may be read there is written here.
fn copy_file(from: &Path, to: &Path) -> Result<(), Error> {
    let mut source = File::open(from).map_err(|error| unreadable(from, &error))?;
    let mut target = files::create(to).map_err(|error| no_room(to, &error))?;
    io::copy(&mut source, &mut target).map(|_| ()).map_err(|error| no_room(to, &error))
}

fn no_room(place: &Path, error: &io::Error) -> Error {
    Error::Io(format!(
        "T5303 doctor-io: cannot copy the log to {}: {error}; name a directory with room for it with --scratch",
        place.display()
    ))
}
