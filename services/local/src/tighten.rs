//! A directory of an earlier build that others may enter.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use tripod_proto::code::Code;

use crate::files::OTHERS;
use crate::user;

/// Takes the rights of others from a directory that this user owns, and says so in the log; one of somebody else is left
/// as it is, and that is said. What lies in it is behind it, and keeps its modes. Links are followed: the operator named
/// it. True if nobody else may enter it now.
///
/// # Errors
/// The system's, also if it is missing.
pub fn tighten(directory: &Path) -> io::Result<bool> {
    let opened = File::open(directory)?;
    let found = opened.metadata()?;
    let mode = found.mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(true);
    }
    let (owner, own) = (found.uid(), user::own());
    if owner != own {
        tracing::warn!(
            code = Code::NotPrivate.number(),
            directory = %directory.display(),
            mode = %format_args!("{mode:o}"),
            owner,
            user = own,
            "other users may enter the data directory, and its mode is not ours to change; next: have its owner `chmod 700` \
             it, or give it to the user of this process"
        );
        return Ok(false);
    }
    opened.set_permissions(Permissions::from_mode(mode & !OTHERS))?;
    tracing::warn!(
        directory = %directory.display(),
        was = %format_args!("{mode:o}"),
        now = %format_args!("{:o}", mode & !OTHERS),
        "other users could enter the data directory; they cannot any more"
    );
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ours_is_tightened_and_what_is_not_is_left() {
        let place = tempfile::tempdir().expect("a directory");
        let data = place.path().join("data");
        std::fs::create_dir(&data).expect("made");
        let mode = || std::fs::metadata(&data).expect("there").mode() & 0o7777;
        std::fs::set_permissions(&data, Permissions::from_mode(0o2755)).expect("set");
        assert!(tighten(&data).expect("ours"));
        assert_eq!(mode(), 0o2700);
        if user::own() != user::ROOT {
            eprintln!("not root: nothing can be given to another user");
            return;
        }
        std::fs::set_permissions(&data, Permissions::from_mode(0o755)).expect("set");
        std::os::unix::fs::chown(&data, Some(12_345), None).expect("given away");
        assert!(!tighten(&data).expect("told"));
        assert_eq!(mode(), 0o755);
    }
}
