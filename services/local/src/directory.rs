//! A directory of our own, or a refusal.

use std::fs::{self, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::files::{self, OTHERS};
use crate::refused::NotPrivate;
use crate::trusted_path;
use crate::user::{self, Trusted};

/// What becomes of a directory of ours that others may enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loose {
    /// It is refused: what others could write to may hold what they left there.
    Refuse,
    /// Others lose their rights, and the log says so. For one that lies in a directory of ours.
    Tighten,
}

/// A directory that belongs to this user, that nobody else enters, and that nobody else can replace.
#[derive(Debug, Clone)]
pub struct PrivateDirectory {
    path: PathBuf,
}

impl PrivateDirectory {
    /// Opens the directory, or makes it and those above it.
    ///
    /// # Errors
    /// [`NotPrivate`]: it is a link, it is somebody else's, or others may enter it, or replace it.
    pub fn open(path: &Path, loose: Loose) -> Result<Self, NotPrivate> {
        let own = user::own();
        // `.` has no name of its own.
        let named = if path.file_name().is_some() { Ok(path.to_owned()) } else { fs::canonicalize(path) };
        let named = named.map_err(|error| NotPrivate::io(path, error))?;
        if let Some(parent) = named.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            files::create_dir_all(parent).map_err(|error| NotPrivate::io(parent, error))?;
        }
        let path = trusted_path::above(&named, Trusted::by(own))?;
        match files::create_dir(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(NotPrivate::io(&path, error));
            }
            _ => {}
        }
        let opened = rustix::fs::open(
            &path,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::PATH,
            Mode::empty(),
        );
        let opened = File::from(opened.map_err(|error| match error {
            rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => {
                NotPrivate::refused(&path, "is a link, or no directory", "name a directory of your own")
            }
            error => NotPrivate::io(&path, error),
        })?);
        let found = opened.metadata().map_err(|error| NotPrivate::io(&path, error))?;
        if found.uid() != own {
            let why = format!("belongs to user {}, and this process to user {own}", found.uid());
            return Err(NotPrivate::refused(&path, why, "name a directory of your own"));
        }
        let mode = found.mode() & 0o7777;
        match loose {
            _ if mode & OTHERS == 0 => {}
            Loose::Tighten => {
                // It is ours and lies where nobody else replaces it.
                let tight = Permissions::from_mode(mode & !OTHERS);
                fs::set_permissions(&path, tight).map_err(|error| NotPrivate::io(&path, error))?;
                let (was, directory) = (format_args!("{mode:o}"), path.display());
                tracing::warn!(%directory, %was, "other users could enter a directory; they cannot any more");
            }
            Loose::Refuse => {
                let why = format!("may be entered by others (mode {mode:o})");
                return Err(NotPrivate::refused(&path, why, "`chmod 700` it, or name another"));
            }
        }
        Ok(Self { path })
    }

    /// Where it really is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn refusal(path: &Path) -> String {
        PrivateDirectory::open(path, Loose::Refuse).expect_err("refused").to_string()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").mode() & 0o7777
    }

    #[test]
    fn what_is_missing_is_made_for_its_owner() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("a/b");
        let made = PrivateDirectory::open(&path, Loose::Refuse).expect("made");
        assert_eq!((mode(made.path()), mode(&place.path().join("a"))), (0o700, 0o700));
        PrivateDirectory::open(&path, Loose::Refuse).expect("ours");
    }

    #[test]
    fn a_link_is_not_followed_whoever_made_it() {
        let place = tempfile::tempdir().expect("a directory");
        let (own, link) = (place.path().join("own"), place.path().join("link"));
        PrivateDirectory::open(&own, Loose::Refuse).expect("made");
        symlink(&own, &link).expect("linked");
        assert!(refusal(&link).contains("is a link"), "{}", refusal(&link));
    }

    #[test]
    fn what_others_may_enter_is_refused_or_tightened() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("loose");
        fs::create_dir(&path).expect("made");
        fs::set_permissions(&path, Permissions::from_mode(0o750)).expect("set");
        let text = refusal(&path);
        assert!(text.starts_with("T1402 not-private: ") && text.contains("chmod 700"), "{text}");
        PrivateDirectory::open(&path, Loose::Tighten).expect("tightened");
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn a_directory_of_another_user_is_refused_also_for_root() {
        if user::own() != user::ROOT {
            eprintln!("not root: nothing can be given to another user");
            return;
        }
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("theirs");
        fs::create_dir(&path).expect("made");
        fs::set_permissions(&path, Permissions::from_mode(0o700)).expect("set");
        chown(&path, Some(12_345), None).expect("given away");
        assert!(refusal(&path).contains("belongs to user 12345"), "{}", refusal(&path));
        // Nor is one of ours in theirs.
        let below = path.join("ours");
        assert!(refusal(&below).contains("belongs to user 12345"), "{}", refusal(&below));
    }
}
