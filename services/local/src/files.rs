//! Making files and directories that nobody else reads.
//!
//! The mode is given at every place that makes one, and [`close`] covers what libraries make, whose modes nobody can
//! give.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::Mode;

/// Of a directory: its owner enters it.
pub const DIRECTORY_MODE: u32 = 0o700;
/// Of a file, and of a socket: its owner reads and writes it.
pub const FILE_MODE: u32 = 0o600;
/// What others may do: nothing.
pub(crate) const OTHERS: u32 = 0o077;

/// From now on whatever this process makes, in whichever way, is for its user only. For processes whose files are all
/// ours, before they have threads: what they start inherits it.
pub fn close() {
    rustix::process::umask(Mode::from_raw_mode(OTHERS));
}

/// Makes a directory.
///
/// # Errors
/// The system's, also if it is there.
pub fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(DIRECTORY_MODE).create(path)
}

/// Makes a directory, and those above it, unless they are there; those are left as they are.
///
/// # Errors
/// The system's.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)
}

/// How files are opened that are made if they are missing.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Makes a file, or empties the one that is there.
///
/// # Errors
/// The system's.
pub fn create(path: &Path) -> io::Result<File> {
    options().write(true).create(true).truncate(true).open(path)
}
