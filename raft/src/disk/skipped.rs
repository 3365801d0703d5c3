//! The note of entries that an operator has this node pass over, because no build can read them.
//!
//! Such an entry changes nothing, on any node: each of them stopped there, and goes on behind it. That is only so while
//! all do the same, which is why a node never passes over an entry by itself.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::disk::Files;

/// The file in the data directory: a line `INDEX CHECKSUM` for each entry.
pub(crate) const FILE: &str = "skipped-entries";
const TEMPORARY: &str = "skipped-entries.tmp";
/// Entries that may be passed over. Whoever has more of them should restore a backup.
const ENTRIES_MAX: usize = 1_000;
/// Bytes of the file: that many lines of two numbers.
const BYTES_MAX: usize = ENTRIES_MAX * 48;

/// Entries by index, with the checksum of what they hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Skipped {
    entries: BTreeMap<u64, u64>,
}

/// What tells an entry's payload from every other.
pub(crate) fn checksum(payload: &[u8]) -> u64 {
    xxh3_64(payload)
}

impl Skipped {
    /// What the note says; nothing if there is none. Blocks.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read(files: &dyn Files) -> io::Result<Self> {
        if !files.list()?.iter().any(|name| name == FILE) {
            return Ok(Self::default());
        }
        let mut text = vec![0; BYTES_MAX];
        let length = files.open(FILE)?.read_at(0, &mut text)?;
        let text = String::from_utf8_lossy(&text[..length]);
        let entries: Option<BTreeMap<u64, u64>> = text.lines().map(line).collect();
        let entries = entries.ok_or_else(|| {
            let problem = format!("{}/{FILE} is not a list of entries and checksums", files.place());
            io::Error::new(ErrorKind::InvalidData, problem)
        })?;
        Ok(Self { entries })
    }

    /// Whether the entry with this payload is passed over.
    pub(crate) fn holds(&self, index: u64, payload: &[u8]) -> bool {
        self.entries.get(&index).is_some_and(|stored| *stored == checksum(payload))
    }

    /// Adds an entry to the note, durably. Blocks.
    ///
    /// # Errors
    /// It cannot be written, or there are too many.
    pub(crate) fn add(mut self, files: &Arc<dyn Files>, index: u64, checksum: u64) -> io::Result<()> {
        self.entries.insert(index, checksum);
        if self.entries.len() > ENTRIES_MAX {
            return Err(io::Error::other(format!("{ENTRIES_MAX} entries are passed over already")));
        }
        let lines = self.entries.iter().map(|(index, checksum)| format!("{index} {checksum:016x}\n"));
        let file = files.create(TEMPORARY)?;
        file.write_at(0, lines.collect::<String>().as_bytes())?;
        file.sync_data()?;
        files.rename(TEMPORARY, FILE)?;
        files.sync_dir()
    }
}

fn line(line: &str) -> Option<(u64, u64)> {
    let (index, checksum) = line.split_once(' ')?;
    Some((index.parse().ok()?, u64::from_str_radix(checksum, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::disk::RealFiles;

    #[test]
    fn an_entry_is_passed_over_only_with_what_it_held() {
        let directory = TempDir::new().unwrap();
        let files: Arc<dyn Files> = Arc::new(RealFiles::open(directory.path()).unwrap());
        let none = Skipped::read(files.as_ref()).unwrap();
        assert!(!none.holds(7, b"garbage"));
        none.add(&files, 7, checksum(b"garbage")).unwrap();
        Skipped::read(files.as_ref()).unwrap().add(&files, 9, checksum(b"more")).unwrap();
        let read = Skipped::read(files.as_ref()).unwrap();
        assert!(read.holds(7, b"garbage") && read.holds(9, b"more"));
        assert!(!read.holds(7, b"more") && !read.holds(8, b"garbage"));
    }

    #[test]
    fn a_note_that_is_none_is_refused() {
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join(FILE), "seven\n").unwrap();
        let files = RealFiles::open(directory.path()).unwrap();
        let refused = Skipped::read(&files).unwrap_err().to_string();
        assert!(refused.contains("skipped-entries is not a list"), "{refused}");
    }
}
