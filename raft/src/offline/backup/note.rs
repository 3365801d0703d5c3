//! The note that a data directory was restored and has not taken part in its cluster yet.
//!
//! A restored node has a log, so it does not look like one at its first start. But restoring may be repeated
//! on a node that has long taken part and lost its disk: it would vote with what it has forgotten. So its
//! first start asks the others whether they know it, as a node without data does (`rejoin`).

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use tripod_local::files;

const FILE: &str = "restored";
const TEXT: &[u8] =
    b"This directory was restored from a snapshot. Its node has not joined its cluster yet.\n";

/// The place of the note.
#[derive(Debug, Clone)]
pub(crate) struct RestoredNote {
    data: PathBuf,
}

impl RestoredNote {
    pub(crate) fn in_directory(data: &Path) -> Self {
        Self { data: data.to_owned() }
    }

    /// Whether the note is there. Unreadable counts as there.
    pub(crate) fn is_set(&self) -> bool {
        self.data.join(FILE).try_exists().unwrap_or(true)
    }

    /// Writes the note durably. Blocks.
    pub(crate) fn set(&self) -> io::Result<()> {
        let mut file = files::create(&self.data.join(FILE))?;
        file.write_all(TEXT)?;
        file.sync_all()?;
        File::open(&self.data)?.sync_all()
    }

    /// Removes the note. Were the removal itself lost, the next start would ask once more, which is safe.
    /// Blocks.
    pub(crate) fn clear(&self) -> io::Result<()> {
        match fs::remove_file(self.data.join(FILE)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => File::open(&self.data)?.sync_all(),
        }
    }
}
