//! Nodes that are started in another way than the first time.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use tripod_processes::cluster::{ClusterOptions, Kind, find_tripod};

/// A program that a cluster starts in the place of `tripod`, and that becomes it with other flags, each node's own.
/// It must outlive the cluster.
pub struct Launcher {
    place: TempDir,
    nodes: BTreeMap<u64, Change>,
}

/// What is other than on the cluster's command line.
#[derive(Debug, Clone, Default)]
struct Change {
    peer: Option<String>,
    flags: Option<String>,
}

impl Launcher {
    /// One that changes nothing yet.
    ///
    /// # Errors
    /// There is no `tripod`, or the program cannot be written.
    pub fn new() -> Result<Self> {
        Self::of(&find_tripod()?)
    }

    fn of(tripod: &Path) -> Result<Self> {
        let place = tempfile::tempdir().context("a folder for the launcher")?;
        let launcher = Self { place, nodes: BTreeMap::new() };
        let script = launcher.script();
        // A node's machine is the one whose data it gets: a node that joins is told no id.
        let text = format!(
            "#!/bin/sh\n\
             before= machine= peer= flags=\n\
             for word in \"$@\"; do\n  [ \"$before\" = --data ] && machine=${{word##*/node-}}\n  before=$word\ndone\n\
             [ -f '{folder}'/\"$machine\" ] && . '{folder}'/\"$machine\"\n\
             before=\n\
             for word in \"$@\"; do\n  shift\n\
             \x20 [ \"$before\" = --peer ] && [ -n \"$peer\" ] && set -- \"$@\" \"$peer\" || set -- \"$@\" \"$word\"\n\
             \x20 before=$word\ndone\n\
             exec '{tripod}' \"$@\" $flags\n",
            folder = launcher.place.path().display(),
            tripod = tripod.display(),
        );
        fs::write(&script, text).with_context(|| format!("cannot write {}", script.display()))?;
        let runs = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&script, runs).context("cannot make the launcher a program")?;
        Ok(launcher)
    }

    /// What to start a cluster with: the same as without it, by this program.
    #[must_use]
    pub fn options(&self, options: ClusterOptions) -> ClusterOptions {
        ClusterOptions { kind: Kind::Tripod { binary: self.script() }, ..options }
    }

    /// From its next start on the node of a machine is reached by the others at this address.
    ///
    /// # Errors
    /// It cannot be written down.
    pub fn move_to(&mut self, machine: u64, peer: &str) -> Result<()> {
        self.nodes.entry(machine).or_default().peer = Some(peer.to_owned());
        self.write(machine)
    }

    /// From its next start on the node of a machine is started with these flags, too, in the place of those that
    /// were given here before.
    ///
    /// # Errors
    /// They cannot be written down.
    pub fn add_flags(&mut self, machine: u64, flags: &str) -> Result<()> {
        self.nodes.entry(machine).or_default().flags = Some(flags.to_owned());
        self.write(machine)
    }

    fn script(&self) -> PathBuf {
        self.place.path().join("tripod")
    }

    fn write(&self, machine: u64) -> Result<()> {
        let Change { peer, flags } = self.nodes.get(&machine).cloned().unwrap_or_default();
        let text = format!("peer='{}'\nflags='{}'\n", peer.unwrap_or_default(), flags.unwrap_or_default());
        fs::write(self.place.path().join(machine.to_string()), text)
            .with_context(|| format!("cannot write down how node {machine} is started"))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn each_node_is_started_with_what_was_said_of_it() {
        let mut launcher = Launcher::of(Path::new("echo")).unwrap();
        launcher.move_to(2, "h:9").unwrap();
        launcher.add_flags(2, "--more 1").unwrap();
        let line = |launcher: &Launcher, machine: u64| {
            let data = format!("a folder/node-{machine}");
            let mut command = Command::new(launcher.script());
            command.args(["server", "--peer", "h:1", "--data", &data, "--http", "h:2"]);
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        };
        assert_eq!(line(&launcher, 1), "server --peer h:1 --data a folder/node-1 --http h:2\n");
        assert_eq!(line(&launcher, 2), "server --peer h:9 --data a folder/node-2 --http h:2 --more 1\n");
        launcher.add_flags(2, "").unwrap();
        assert_eq!(line(&launcher, 2), "server --peer h:9 --data a folder/node-2 --http h:2\n");
    }
}
