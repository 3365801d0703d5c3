//! A root like that of a machine with nothing of ours on it: no toolchain, no checkout, no home. It is an overlay over the
//! system of this machine, or over another one that `debootstrap` made, and takes a second to make. Needs root and Linux.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// What makes it, from within its own namespaces.
const ENTER: &str = include_str!("enter.sh");
/// Where programs of a bare system are.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Where the shared folder is in it.
pub(crate) const HERE: &str = "/here";
/// How this machine reaches a package index; all else of the environment stays outside.
const OF_INDEX: [&str; 9] = [
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "PIP_CERT",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_INDEX_URL",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// What a program in it reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    /// What this machine reaches.
    Ours,
    /// Only itself, and not before its loopback device is up: all ports are free.
    Own,
}

/// Such a root, to be made for each program anew.
#[derive(Debug, Clone)]
pub(crate) struct CleanRoot {
    /// The system below it.
    base: PathBuf,
    /// What it shares with us; files here outlive it.
    folder: PathBuf,
    /// An empty directory in which it is mounted.
    place: PathBuf,
}

impl CleanRoot {
    /// Over the system at `base`, with `folder`, an existing directory, as its `/here`.
    ///
    /// # Errors
    /// A directory cannot be made.
    pub(crate) fn new(base: &Path, folder: &Path) -> Result<Self> {
        let base = base.canonicalize().with_context(|| format!("no system at {}", base.display()))?;
        let place = folder.join(".root");
        fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
        Ok(Self { base, folder: folder.to_owned(), place })
    }

    /// Whether this machine lets us make one; if not, why.
    ///
    /// # Errors
    /// What it answered, as text.
    pub(crate) fn try_it(&self) -> Result<(), String> {
        let mut command = self.command(Network::Own, &[], &["true"]);
        let output = command.stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("cannot start unshare: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }

    /// A program in it, with these variables. All its processes end with it.
    pub(crate) fn command(&self, network: Network, variables: &[(&str, &str)], program: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--uts", "--pid", "--fork", "--kill-child"]);
        if network == Network::Own {
            command.arg("--net");
        }
        command.args(["sh", "-c", ENTER, "enter"]).arg(&self.base).arg(&self.place).arg(&self.folder);
        command.arg(format!("PATH={PATH}")).args(["HOME=/root", "LANG=C.UTF-8"]);
        let of_index = OF_INDEX.iter().filter_map(|name| Some((*name, std::env::var(name).ok()?)));
        for (name, value) in of_index.filter(|_| network == Network::Ours) {
            command.arg(format!("{name}={value}"));
        }
        command.args(variables.iter().map(|(name, value)| format!("{name}={value}"))).args(program);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where it cannot be made, that is said, and nothing was looked at.
    #[test]
    fn nothing_but_the_system_is_in_it_and_what_is_written_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = CleanRoot::new(Path::new("/"), folder.path()).unwrap();
        if let Err(why) = root.try_it() {
            eprintln!("no root of its own here: {why}");
            return;
        }
        let script = "echo a > /etc/written; echo b > kept; ls -A /root /usr/local; command -v cargo; pwd; env; \
                      getent hosts \"$(cat /proc/sys/kernel/hostname)\" || exit 1; ls -d /proc/[0-9]* | wc -l";
        let output = root.command(Network::Own, &[("WORD", "told")], &["sh", "-c", script]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
        assert!(!told.contains("cargo"), "{told}");
        assert!(
            told.starts_with("/root:\n\n/usr/local:\n/here\n") && told.contains("\nWORD=told\n"),
            "{told}"
        );
        let processes: u32 = told.lines().last().unwrap().parse().unwrap();
        assert!(told.contains("127.0.1.1 "), "it does not know its own name: {told}");
        assert!(processes <= 5, "processes of this machine are in it: {told}");
        assert_eq!(fs::read_to_string(folder.path().join("kept")).unwrap(), "b\n");
        assert!(!Path::new("/etc/written").exists());
    }
}
