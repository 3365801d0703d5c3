//! Which build each node runs, at its next start.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tripod_processes::cluster::{ClusterOptions, Kind, find_tripod};

/// Names the binary of a real older build, to be used in place of this one's imitation of it.
const OLD: &str = "TRIPOD_OLD_BIN";

/// A build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// It supports feature level 1 only.
    Before,
    /// This one, as one that supports feature levels up to this one only.
    UpTo(u32),
    This,
}

/// A program that every node is started with, which becomes what the node is to run.
pub(crate) struct Builds {
    place: TempDir,
    this: PathBuf,
    /// A real one, if there is one.
    before: Option<PathBuf>,
}

impl Builds {
    /// All nodes run `build`.
    pub(crate) fn all(build: Build) -> Self {
        let place = tempfile::tempdir().unwrap();
        let before = std::env::var_os(OLD).map(PathBuf::from);
        let builds = Self { place, this: find_tripod().unwrap(), before };
        for node in 1..=3 {
            builds.set(node, build);
        }
        let script = builds.script();
        let text = format!(
            "#!/bin/sh\nnode= before=\nfor word in \"$@\"; do\n  [ \"$before\" = --node ] && node=$word\n  before=$word\n\
             done\n. {}/node-$node\nexec \"$program\" \"$@\" $flags\n",
            builds.place.path().display()
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        builds
    }

    fn script(&self) -> PathBuf {
        self.place.path().join("tripod")
    }

    /// What to start a cluster with.
    pub(crate) fn options(&self) -> ClusterOptions {
        let options = ClusterOptions::tripod().unwrap();
        ClusterOptions { kind: Kind::Tripod { binary: self.script() }, ..options }
    }

    /// What the node is at its next start.
    pub(crate) fn set(&self, node: u64, build: Build) {
        let write = |program: &Path, flags: &str| {
            let text = format!("program={}\nflags='{flags}'\n", program.display());
            fs::write(self.place.path().join(format!("node-{node}")), text).unwrap();
        };
        match (build, &self.before) {
            (Build::This, _) => write(&self.this, ""),
            (Build::UpTo(level), _) => write(&self.this, &format!("--feature-level-max {level}")),
            (Build::Before, Some(real)) => write(real, ""),
            (Build::Before, None) => write(&self.this, "--feature-level-max 1"),
        }
    }
}
