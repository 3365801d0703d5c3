//! Whether others could replace what lies at a path.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::refused::NotPrivate;
use crate::user::{self, Trusted};

/// Group and all others may write.
const OTHERS_WRITE: u32 = 0o022;
/// In such a directory only the owner of an entry replaces it.
const STICKY: u32 = 0o1000;

/// Checks that only this user and root can replace what is made at `path`: whoever could would be taken for us.
///
/// # Errors
/// [`NotPrivate`]; it is missing if the directory is.
pub fn check_path(path: &Path) -> Result<(), NotPrivate> {
    above(path, Trusted::by(user::own())).map(drop)
}

/// Checks, before anything is believed that is said there, that a socket is this user's or root's, and that nobody else
/// can replace it.
///
/// # Errors
/// [`NotPrivate`].
pub fn check_socket(path: &Path) -> Result<(), NotPrivate> {
    let trusted = Trusted::by(user::own());
    let path = above(path, trusted)?;
    let found = fs::symlink_metadata(&path).map_err(|error| NotPrivate::io(&path, error))?;
    if !found.file_type().is_socket() {
        return Err(NotPrivate::refused(&path, "is no socket", "name the socket itself"));
    }
    check_owner(&path, &found, trusted)
}

/// The path with the directory that it lies in as that really is, which only those may change who are trusted.
pub(crate) fn above(path: &Path, trusted: Trusted) -> Result<PathBuf, NotPrivate> {
    let Some(name) = path.file_name() else {
        return Err(NotPrivate::refused(path, "has no name of its own", "name it by its path"));
    };
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let parent = fs::canonicalize(parent).map_err(|error| NotPrivate::io(parent, error))?;
    for directory in parent.ancestors() {
        let found = fs::symlink_metadata(directory).map_err(|error| NotPrivate::io(directory, error))?;
        check_owner(directory, &found, trusted)?;
        if found.mode() & OTHERS_WRITE != 0 && found.mode() & STICKY == 0 {
            let why = format!(
                "may be written to by others (mode {:o}), who could replace what is in it",
                found.mode() & 0o7777
            );
            let next = "name a directory below one that only its owner writes to, or `chmod go-w` this one (or `chmod +t`)";
            return Err(NotPrivate::refused(directory, why, next));
        }
    }
    Ok(parent.join(name))
}

fn check_owner(path: &Path, found: &Metadata, trusted: Trusted) -> Result<(), NotPrivate> {
    if trusted.has(found.uid()) {
        return Ok(());
    }
    let why = format!("belongs to user {}, who could replace what is there", found.uid());
    let next = format!("name one of user {}, or of root", user::own());
    Err(NotPrivate::refused(path, why, next))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
    }

    fn refusal(path: &Path) -> String {
        check_path(path).expect_err("refused").to_string()
    }

    #[test]
    fn a_place_is_only_as_good_as_every_directory_above_it() {
        let place = tempfile::tempdir().expect("a directory");
        let (above, own) = (place.path().join("above"), place.path().join("above/own"));
        fs::create_dir_all(&own).expect("made");
        set(&own, 0o700);
        check_path(&own.join("s")).expect("ours");
        set(&above, 0o777);
        let text = refusal(&own.join("s"));
        assert!(text.starts_with("T1402 not-private: ") && text.contains("(mode 777)"), "{text}");
        set(&above, 0o1777);
        check_path(&own.join("s")).expect("what is ours stays ours there");
        set(&above, 0o775);
        assert!(refusal(&own.join("s")).contains("(mode 775)"));
        // A link does not hide where it leads.
        symlink(&own, place.path().join("link")).expect("linked");
        assert!(refusal(&place.path().join("link/s")).contains("(mode 775)"));
        assert!(check_path(&place.path().join("none/s")).expect_err("missing").is_missing());
    }

    #[test]
    fn a_socket_of_somebody_else_is_not_believed() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("s");
        let _listener = UnixListener::bind(&path).expect("bound");
        check_socket(&path).expect("ours");
        let file = place.path().join("file");
        fs::write(&file, "").expect("written");
        assert!(check_socket(&file).expect_err("refused").to_string().contains("is no socket"));
        if user::own() != user::ROOT {
            eprintln!("not root: nothing can be given to another user");
            return;
        }
        chown(&path, Some(12_345), None).expect("given away");
        assert!(check_socket(&path).expect_err("refused").to_string().contains("belongs to user 12345"));
        chown(&path, Some(0), None).expect("back");
        chown(place.path(), Some(12_345), None).expect("given away");
        assert!(check_socket(&path).expect_err("refused").to_string().contains("belongs to user 12345"));
    }
}
