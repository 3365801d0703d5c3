//! The note that this node has lost its data. It is written before the first entry or vote of the new
//! data, so that a start in the middle does not take them for the whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

const FILE: &str = "rejoining";
const TEXT: &[u8] = b"This node has lost its data and votes again when it holds what the others have.\n";

/// Whether the note is there. Unreadable counts as there.
pub(crate) fn is_set(data: &Path) -> bool {
    data.join(FILE).try_exists().unwrap_or(true)
}

/// Writes the note durably.
pub(crate) fn set(data: &Path) -> io::Result<()> {
    let mut file = File::create(data.join(FILE))?;
    file.write_all(TEXT)?;
    file.sync_all()?;
    File::open(data)?.sync_all()
}

/// Removes the note. Were the removal itself lost, the next start would ask once more, which is safe.
pub(crate) fn clear(data: &Path) -> io::Result<()> {
    match fs::remove_file(data.join(FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::open(data)?.sync_all(),
    }
}
