//! The note that this node has lost its data. It is written before the first entry or vote of the new
//! data, so that a start in the middle does not take them for the whole.

use std::io;
use std::sync::Arc;

use crate::disk::Files;

const FILE: &str = "rejoining";
const TEXT: &[u8] = b"This node has lost its data and votes again when it holds what the others have.\n";

/// The place of the note.
#[derive(Clone)]
pub(crate) struct Marker {
    files: Arc<dyn Files>,
}

impl Marker {
    pub(crate) fn new(files: Arc<dyn Files>) -> Self {
        Self { files }
    }

    /// Whether the note is there. Unreadable counts as there.
    pub(crate) fn is_set(&self) -> bool {
        self.files.list().map_or(true, |names| names.iter().any(|name| name == FILE))
    }

    /// Writes the note durably.
    pub(crate) fn set(&self) -> io::Result<()> {
        let file = self.files.create(FILE)?;
        file.write_at(0, TEXT)?;
        file.sync_data()?;
        self.files.sync_dir()
    }

    /// Removes the note. Were the removal itself lost, the next start would ask once more, which is safe.
    pub(crate) fn clear(&self) -> io::Result<()> {
        match self.files.remove(FILE) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => self.files.sync_dir(),
        }
    }
}
