//! A directory that is there already, and that holds what nobody else may read.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::files::OTHERS;
use crate::refused::NotPrivate;
use crate::user;

/// Whose a directory must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// This user's.
    Own,
    /// Anybody's; only one of this user's own is looked at. For what several users share.
    Any,
}

/// Refuses a directory that is there and that others may enter. What nobody else could read may have been read already, so
/// its owner is to know. Links are followed: the operator named it.
///
/// # Errors
/// [`NotPrivate`] with the `chmod` or `chown` that mends it.
pub fn check_closed(directory: &Path, owner: Owner) -> Result<(), NotPrivate> {
    // One that is missing is made closed, and who cannot look at it cannot use it: that is told by who tries.
    let Ok(found) = fs::metadata(directory) else { return Ok(()) };
    let own = user::own();
    if found.uid() != own {
        if owner == Owner::Any {
            return Ok(());
        }
        let why = format!("belongs to user {}, and this process to user {own}", found.uid());
        let next = format!("`chown {own} {}`, or name another", directory.display());
        return Err(NotPrivate::refused(directory, why, next));
    }
    let mode = found.mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    let why = format!("may be entered by other users (mode {mode:o})");
    Err(NotPrivate::refused(directory, why, format!("`chmod 700 {}`", directory.display())))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, chown};

    use super::*;

    #[test]
    fn s53_what_others_may_enter_is_refused_with_the_command_that_closes_it() {
        let place = tempfile::tempdir().expect("a directory");
        let data = place.path().join("data");
        check_closed(&data, Owner::Own).expect("what is missing will be made");
        fs::create_dir(&data).expect("made");
        let set = |mode| fs::set_permissions(&data, Permissions::from_mode(mode)).expect("set");
        for (mode, shown) in [(0o755, "755"), (0o2770, "2770"), (0o701, "701")] {
            set(mode);
            for owner in [Owner::Own, Owner::Any] {
                let text = check_closed(&data, owner).expect_err("open").to_string();
                let path = data.display();
                let expected = format!(
                    "T1402 not-private: {path} may be entered by other users (mode {shown}); `chmod 700 {path}`"
                );
                assert_eq!(text, expected);
            }
        }
        set(0o700);
        check_closed(&data, Owner::Own).expect("closed");
        if user::own() != user::ROOT {
            eprintln!("not root: nothing can be given to another user");
            return;
        }
        chown(&data, Some(12_345), None).expect("given away");
        let text = check_closed(&data, Owner::Own).expect_err("theirs").to_string();
        assert!(text.contains("belongs to user 12345") && text.contains("`chown 0 "), "{text}");
        check_closed(&data, Owner::Any).expect("somebody shares it");
    }
}
