//! What a cluster is started with, and where its programs are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Whose nodes they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// `tripod server` processes.
    Tripod { binary: PathBuf },
    /// etcd, for comparison.
    Etcd { binary: PathBuf },
}

/// How a cluster is started.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    pub kind: Kind,
    /// The first voters, nodes 1 and up.
    pub nodes: u64,
    /// Machines behind theirs, whose nodes join the cluster.
    pub spares: u64,
    /// Must be empty, and is kept; without it, a temporary directory below the system's. A later cluster
    /// cannot go on with it: members remember each other's ports, which are new for every cluster.
    pub data: Option<PathBuf>,
    /// Appended to every node's command line.
    pub extra_args: Vec<String>,
    /// Set in the environment of nodes, whatever it was in ours.
    pub extra_env: Vec<NodeEnv>,
    /// Nodes reach each other through a [`crate::proxy::Network`], and clients can too. Tripod only.
    pub proxied: bool,
    /// Nodes have ports for nodes of MindSpore. Builds before know none.
    pub mindspore: bool,
}

/// A variable in the environment of one node, or of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEnv {
    /// `None`: every node.
    pub node: Option<u64>,
    pub name: String,
    pub value: OsString,
}

impl ClusterOptions {
    /// Three nodes of the `tripod` binary that was built together with this program.
    ///
    /// # Errors
    /// No such binary.
    pub fn tripod() -> anyhow::Result<Self> {
        Ok(Self::three(Kind::Tripod { binary: find_tripod()? }))
    }

    /// Three nodes of another build of ours.
    ///
    /// # Errors
    /// There is no such file.
    pub fn tripod_at(binary: &Path) -> anyhow::Result<Self> {
        anyhow::ensure!(binary.is_file(), "there is no file {}; next: build it there", binary.display());
        Ok(Self::three(Kind::Tripod { binary: binary.to_owned() }))
    }

    /// Three nodes of the installed etcd.
    ///
    /// # Errors
    /// It is not installed.
    pub fn etcd() -> anyhow::Result<Self> {
        Ok(Self::three(Kind::Etcd { binary: find_etcd()? }))
    }

    /// Appends arguments to every node's command line.
    #[must_use]
    pub fn with_args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.extra_args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Gives every node ports for nodes of MindSpore.
    #[must_use]
    pub fn with_mindspore(self) -> Self {
        Self { mindspore: true, ..self }
    }

    fn three(kind: Kind) -> Self {
        Self {
            kind,
            nodes: 3,
            spares: 0,
            data: None,
            extra_args: Vec::new(),
            extra_env: Vec::new(),
            proxied: false,
            mindspore: false,
        }
    }
}

/// What the program is called that runs all this.
const CHAOS: &str = "tripod-chaos";

/// The `tripod` binary: `TRIPOD_BIN`, else beside the running program, else one directory up (tests
/// run from `deps/`).
///
/// # Errors
/// There is none.
pub fn find_tripod() -> anyhow::Result<PathBuf> {
    if let Some(given) = std::env::var_os("TRIPOD_BIN") {
        let given = PathBuf::from(given);
        anyhow::ensure!(given.is_file(), "TRIPOD_BIN is {}, which is no file", given.display());
        return Ok(given);
    }
    let here = std::env::current_exe().context("where this program lies")?;
    let near = here.ancestors().skip(1).take(2).map(|directory| directory.join("tripod"));
    near.into_iter().find(|path| path.is_file()).with_context(|| {
        format!(
            "no `tripod` binary near {}; build it with `cargo build -p tripod` (add --release for \
             benchmarks), or set TRIPOD_BIN",
            here.display()
        )
    })
}

/// The program that plays workers: this one, else `tripod-chaos` beside it, else one directory up, as tests need it.
///
/// # Errors
/// There is none.
pub(super) fn find_chaos() -> anyhow::Result<PathBuf> {
    let here = std::env::current_exe().context("where this program lies")?;
    if here.file_name().is_some_and(|name| name == CHAOS) {
        return Ok(here);
    }
    let near = here.ancestors().skip(1).take(2).map(|directory| directory.join(CHAOS));
    near.into_iter().find(|path| path.is_file()).with_context(|| {
        format!("no `{CHAOS}` near {}; build it with `cargo build -p {CHAOS}`", here.display())
    })
}

/// The `etcd` binary on the search path.
///
/// # Errors
/// It is not installed.
pub fn find_etcd() -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    search("etcd", std::env::split_paths(&path)).context(
        "no `etcd` on PATH; the comparison needs it: `cargo xtask bench` installs the pinned one, or run \
         without --vs-etcd",
    )
}

fn search<P: AsRef<Path>>(program: &str, directories: impl Iterator<Item = P>) -> Option<PathBuf> {
    directories.map(|directory| directory.as_ref().join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_directory_that_has_the_program_wins() {
        let directories = [(); 3].map(|()| tempfile::tempdir().unwrap());
        for directory in &directories[1..] {
            std::fs::write(directory.path().join("etcd"), "").unwrap();
        }
        let found = search("etcd", directories.iter().map(tempfile::TempDir::path));
        assert_eq!(found, Some(directories[1].path().join("etcd")));
        assert_eq!(search("etcdctl", directories.iter().map(tempfile::TempDir::path)), None);
    }
}
