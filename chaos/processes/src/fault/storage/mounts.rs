//! Mounting and unmounting with the system's own programs, and what a machine cannot do.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

/// Why a fault cannot be made on this machine. Tests print it and pass; anything else is a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip(String);

impl Skip {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// The reason, if this is why `error` came.
    #[must_use]
    pub fn of(error: &anyhow::Error) -> Option<&Self> {
        error.downcast_ref()
    }
}

impl std::fmt::Display for Skip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "skipped: {}", self.0)
    }
}

impl std::error::Error for Skip {}

/// Whether file systems can be mounted here.
///
/// # Errors
/// [`Skip`] if not.
pub(super) fn ensure_mountable(loops: bool) -> anyhow::Result<()> {
    let user = std::fs::metadata("/proc/self").context("who runs this")?.uid();
    anyhow::ensure!(user == 0, Skip::new("needs root, to mount a file system for a node"));
    if loops {
        let control = Path::new("/dev/loop-control").exists();
        anyhow::ensure!(control, Skip::new("needs root and loop devices; there is no /dev/loop-control"));
        let formats = Command::new("mkfs.ext4").arg("-V").output().is_ok();
        anyhow::ensure!(formats, Skip::new("needs mkfs.ext4 (package e2fsprogs)"));
    }
    Ok(())
}

/// Runs a program of the system's, to its end.
///
/// # Errors
/// Its own words.
pub(super) fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let done =
        Command::new(program).args(arguments).output().with_context(|| format!("cannot run {program}"))?;
    let words = String::from_utf8_lossy(&done.stderr);
    anyhow::ensure!(done.status.success(), "{program} {}: {}", arguments.join(" "), words.trim());
    Ok(())
}

/// Whether something is mounted at exactly `place`.
pub(super) fn is_mounted(place: &Path) -> bool {
    mounted_places().iter().any(|mounted| Path::new(mounted) == place)
}

/// Every place where something is mounted in this mount namespace.
fn mounted_places() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    table.lines().filter_map(|line| Some(line.split(' ').nth(1)?.to_owned())).collect()
}

/// The name of the directory of a disk that this process makes; `number` counts within the process.
pub(super) fn directory_name(number: u32) -> String {
    format!("{PREFIX}{}-{number}", std::process::id())
}

const PREFIX: &str = "tripod-disk-";

/// Unmounts and removes what processes left behind that were killed before they could clean up.
pub(super) fn sweep_leftovers(temporary: &Path) {
    let Ok(entries) = std::fs::read_dir(temporary) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(owner) else { continue };
        if !Path::new(&format!("/proc/{owner}")).exists() {
            let place = entry.path();
            let _ = unmount_lazily(&place.join("mount"));
            // Never through a mount that would not go.
            if !is_mounted(&place.join("mount")) {
                let _ = std::fs::remove_dir_all(&place);
            }
        }
    }
}

/// The process that made a directory of this name.
fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

/// Takes the file system out of the tree at once; the kernel lets go of it and of its loop device when the
/// last process that has a file open in it has ended.
pub(super) fn unmount_lazily(place: &Path) -> anyhow::Result<()> {
    if !is_mounted(place) {
        return Ok(());
    }
    run("umount", &["-l", &place.display().to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_names_have_an_owner() {
        assert_eq!(owner(&directory_name(3)), Some(std::process::id()));
        assert_eq!(owner("tripod-disk-x-1"), None);
        assert_eq!(owner("somebody-12-1"), None);
    }

    #[test]
    fn a_skip_is_told_from_a_failure() {
        let skip = anyhow::Error::from(Skip::new("no moon")).context("cutting");
        assert_eq!(Skip::of(&skip).map(ToString::to_string).as_deref(), Some("skipped: no moon"));
        assert_eq!(Skip::of(&anyhow::anyhow!("broken")), None);
    }
}
