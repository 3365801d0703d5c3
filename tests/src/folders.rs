//! Directories that cannot be written to.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

/// A mounted memory file system; unmounted when dropped.
pub struct Mounted {
    at: PathBuf,
}

impl Mounted {
    /// Mounts `options` at the directory `at`; `None` where that is not allowed.
    #[must_use]
    pub fn try_at(at: &Path, options: &str) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tripod-test"]).arg(at);
        let mounted = mount.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success());
        mounted.then(|| Self { at: at.to_owned() })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily, because a process that was killed a moment ago may still hold a file. A failure
        // leaves an empty file system in a temporary directory, which harms nobody.
        let _ = Command::new("umount").arg("--lazy").arg(&self.at).status();
    }
}

/// Makes `at` a directory in which this user cannot create a file. The guard restores nothing but
/// must live as long as the directory is needed; `None` where there is no way to do it.
///
/// # Errors
/// The directory cannot be made.
pub fn read_only(at: &Path) -> Result<Option<Option<Mounted>>> {
    fs::create_dir_all(at).with_context(|| format!("cannot make {}", at.display()))?;
    fs::set_permissions(at, Permissions::from_mode(0o555))?;
    let probe = at.join("probe");
    if File::create(&probe).is_err() {
        return Ok(Some(None));
    }
    // Permissions do not bind the superuser; a file system that is mounted read-only does.
    fs::remove_file(&probe)?;
    Ok(Mounted::try_at(at, "ro,size=1m").map(Some))
}
