//! Files that hold a secret: read only if nobody else could have read or replaced them.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What others may do to such a file: nothing.
const OTHERS: u32 = 0o077;

/// Opens such a file.
///
/// # Errors
/// Why it cannot be used, as text: it cannot be read, is no file, or is not this user's alone.
pub(crate) fn open(path: &Path) -> Result<File, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let found = file.metadata().map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is not a file".to_owned());
    }
    let own = nix::unistd::Uid::effective().as_raw();
    if found.uid() != own && found.uid() != 0 {
        return Err(format!("it belongs to user {}, who could replace it", found.uid()));
    }
    if found.mode() & OTHERS != 0 {
        return Err(format!(
            "others may use it (mode {:o}); `chmod 600 {}`",
            found.mode() & 0o777,
            path.display()
        ));
    }
    Ok(file)
}
