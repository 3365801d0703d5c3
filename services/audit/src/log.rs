//! The files: lines are appended to the last, and the first goes when there are too many.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use tripod_local::files as private;

use crate::line::{Hash, LINE_BYTES_MAX, Line};
use crate::names;
use crate::record::{Change, Record, Text};

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of one file, in bytes.
    pub file_bytes: u64,
    /// Files, of which the oldest goes.
    pub files: usize,
}

impl Default for Limits {
    /// A gibibyte in all.
    fn default() -> Self {
        Self { file_bytes: 64 << 20, files: 16 }
    }
}

/// The lock of a directory: two processes that append to one file would put lines with the same number behind the same line.
const LOCK: &str = "audit.lock";

/// The log of a process. Whoever has opened it is the only one who has, until it is dropped or the process ends.
#[derive(Debug)]
pub struct Log {
    directory: PathBuf,
    /// Held as long as it is open.
    _lock: File,
    limits: Limits,
    file: File,
    /// How much of the file is whole lines.
    bytes: u64,
    /// Something may lie behind those.
    is_torn: bool,
    is_dirty: bool,
    /// Of the last line.
    seq: u64,
    hash: Hash,
}

/// Why a log was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system's word.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The last whole line of the last file is none that was written here, so no line can be put behind it.
    #[error("the last line of {0} is not one of an audit log; move the file away, and a new log begins")]
    Damaged(PathBuf),
    /// Somebody writes it.
    #[error(
        "another process writes the audit log of {0}; give each process a directory of its own, or end the other one"
    )]
    InUse(PathBuf),
}

/// The end of a file.
struct Tail {
    /// How much of it is whole lines.
    whole: u64,
    /// How much is not.
    unfinished: u64,
    last: Option<Vec<u8>>,
}

impl Log {
    /// Opens the log of a directory, or begins one, and writes `opened` as its next line. What was left unfinished is cut off, and
    /// that line says so.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(directory: &Path, limits: Limits, opened: Record) -> Result<Self, OpenError> {
        private::create_dir_all(directory)?;
        let lock = lock(directory)?;
        let files = names::files(directory)?;
        let (path, first) = match files.last() {
            Some((first, path)) => (path.clone(), *first),
            None => (directory.join(names::of(1)), 1),
        };
        let mut file = private::options().read(true).append(true).create(true).open(&path)?;
        let tail = Tail::of(&mut file)?;
        let (seq, hash) = match &tail.last {
            Some(last) => {
                let line = Line::read(last).ok_or_else(|| OpenError::Damaged(path.clone()))?;
                (line.seq, Hash::of(last))
            }
            // A process ended between making a file and its first line.
            None => match files.iter().rev().nth(1) {
                Some((_, before)) => last_of(before)?,
                None => (first.saturating_sub(1), Hash::NONE),
            },
        };
        file.set_len(tail.whole)?;
        sync_directory(directory)?;
        let directory = directory.to_owned();
        let mut log = Self {
            directory,
            _lock: lock,
            limits,
            file,
            bytes: tail.whole,
            is_torn: false,
            is_dirty: false,
            seq,
            hash,
        };
        let resource = match tail.unfinished {
            0 => opened.resource.clone(),
            cut => Text::of(&format!("{cut} bytes of an unfinished line were cut off")),
        };
        log.append(&Record { change: Some(Change::Opened), resource, ..opened })?;
        log.sync()?;
        Ok(log)
    }

    /// Writes a line, and says its number. It is durable after the next [`Self::sync`].
    ///
    /// # Errors
    /// The system's. The line was not written, and nothing of it stays.
    pub fn append(&mut self, record: &Record) -> io::Result<u64> {
        self.mend()?;
        let line = Line { seq: self.seq + 1, prev: self.hash, record: record.clone() };
        let mut bytes = line.bytes();
        let hash = Hash::of(&bytes);
        bytes.push(b'\n');
        debug_assert!(bytes.len() <= LINE_BYTES_MAX, "each of its texts has a bound");
        if self.bytes > 0 && self.bytes + bytes.len() as u64 > self.limits.file_bytes {
            self.turn_over(line.seq)?;
        }
        self.is_torn = true;
        self.is_dirty = true;
        if let Err(error) = self.file.write_all(&bytes) {
            // If even that fails, the next line tries again.
            let _ = self.mend();
            return Err(error);
        }
        self.is_torn = false;
        self.bytes += bytes.len() as u64;
        (self.seq, self.hash) = (line.seq, hash);
        Ok(line.seq)
    }

    /// Makes all lines durable.
    ///
    /// # Errors
    /// The system's.
    pub fn sync(&mut self) -> io::Result<()> {
        if self.is_dirty {
            self.file.sync_data()?;
            self.is_dirty = false;
        }
        Ok(())
    }

    /// The number of the last line and its hash: whoever keeps them elsewhere can prove what was before.
    #[must_use]
    pub fn last(&self) -> (u64, Hash) {
        (self.seq, self.hash)
    }

    /// Cuts off what is left of a line that could not be written.
    fn mend(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.bytes)?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// Goes on in a new file, whose first line has this number.
    fn turn_over(&mut self, seq: u64) -> io::Result<()> {
        self.sync()?;
        let path = self.directory.join(names::of(seq));
        self.file = private::options().append(true).create_new(true).open(path)?;
        self.bytes = 0;
        let files = names::files(&self.directory)?;
        let too_many = files.len().saturating_sub(self.limits.files.max(1));
        for (_, oldest) in files.iter().take(too_many) {
            std::fs::remove_file(oldest)?;
        }
        sync_directory(&self.directory)
    }
}

impl Tail {
    fn of(file: &mut File) -> io::Result<Self> {
        let length = file.seek(SeekFrom::End(0))?;
        // The last whole line and what is behind it is no longer than two lines.
        let begin = length.saturating_sub(2 * LINE_BYTES_MAX as u64);
        file.seek(SeekFrom::Start(begin))?;
        let mut bytes = Vec::new();
        file.take(2 * LINE_BYTES_MAX as u64).read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
        let unfinished = (bytes.len() - whole) as u64;
        let last = bytes[..whole].strip_suffix(b"\n").map(|lines| {
            let begin = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
            lines[begin..].to_vec()
        });
        Ok(Self { whole: length - unfinished, unfinished, last })
    }
}

/// Number and hash of the last line of a file that is full.
fn last_of(path: &Path) -> Result<(u64, Hash), OpenError> {
    let tail = Tail::of(&mut File::open(path)?)?;
    let damaged = || OpenError::Damaged(path.to_owned());
    let last = tail.last.ok_or_else(damaged)?;
    let line = Line::read(&last).ok_or_else(damaged)?;
    Ok((line.seq, Hash::of(&last)))
}

/// Takes the lock of a directory. The file stays: to remove it would let others lock another one of the same name.
fn lock(directory: &Path) -> Result<File, OpenError> {
    let lock = private::options().write(true).create(true).truncate(false).open(directory.join(LOCK))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(directory.to_owned())),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
