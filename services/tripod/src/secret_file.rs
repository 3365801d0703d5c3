//! Files that hold a secret: read only if nobody else could have read or replaced them.

use std::fs::File;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::OFlag;

/// What others may do to such a file: nothing.
const OTHERS: u32 = 0o077;

/// Opens such a file.
///
/// # Errors
/// Why it cannot be used, as text: it cannot be read, is no file, or is not this user's alone.
pub(crate) fn open(path: &Path) -> Result<File, String> {
    // Nobody waits for who might write into a pipe.
    let opened = File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path);
    let file = opened.map_err(|error| error.to_string())?;
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

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::io::Read as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use nix::sys::stat::Mode;

    use super::*;

    #[test]
    fn only_a_file_of_this_user_alone_is_opened_and_nobody_waits_for_a_pipe() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        fs::write(at("key"), "secret").expect("written");
        for (mode, is_read) in [(0o600, true), (0o400, true), (0o640, false), (0o602, false), (0o601, false)]
        {
            fs::set_permissions(at("key"), Permissions::from_mode(mode)).expect("set");
            assert_eq!(open(&at("key")).is_ok(), is_read, "{mode:o}");
        }
        // A link is followed, as mounted secrets are links; what it leads to is judged.
        symlink(at("key"), at("link")).expect("linked");
        assert!(open(&at("link")).expect_err("mode 601").contains("`chmod 600 "));
        fs::set_permissions(at("key"), Permissions::from_mode(0o600)).expect("set");
        let mut text = String::new();
        open(&at("link")).expect("private").read_to_string(&mut text).expect("text");
        assert_eq!(text, "secret");
        nix::unistd::mkfifo(&at("pipe"), Mode::S_IRUSR | Mode::S_IWUSR).expect("made");
        for no_file in ["pipe", "."] {
            assert_eq!(open(&at(no_file)).expect_err("no file"), "it is not a file");
        }
        assert!(open(&at("none")).is_err());
    }
}
