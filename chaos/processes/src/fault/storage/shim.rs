//! Nodes that run with the preloaded library.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rand::Rng;

use super::controls::Controls;
use super::toolchain;
use super::unflushed::{self, Mercy, Taken};
use crate::cluster::Cluster;

/// The library, and for each node the file that steers it. Must live as long as nodes are started with it.
#[derive(Debug)]
pub struct Shim {
    program: PathBuf,
    controls: BTreeMap<u64, Controls>,
    logs_writes: bool,
    // Last, so that nothing of the above outlives its files.
    directory: tempfile::TempDir,
}

impl Shim {
    /// Prepares `nodes` nodes of `binary`. Start them with [`Self::program`] in its place.
    ///
    /// # Errors
    /// [`Skip`](super::Skip) where there is no C compiler; else what went wrong.
    pub fn prepare(binary: &Path, nodes: u64) -> anyhow::Result<Self> {
        Self::make(binary, nodes, false)
    }

    /// The same, and what the nodes write is logged until it is flushed, so that [`Self::cut`] can take it
    /// back. Writes become slower, and the log takes as much space as they do.
    ///
    /// # Errors
    /// As for [`Self::prepare`].
    pub fn prepare_for_cuts(binary: &Path, nodes: u64) -> anyhow::Result<Self> {
        Self::make(binary, nodes, true)
    }

    fn make(binary: &Path, nodes: u64, logs_writes: bool) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("tripod-faults-").tempdir()?;
        let library = toolchain::build_faults(directory.path())?;
        let controls =
            (1..=nodes).map(|node| Ok((node, Controls::create(&control(directory.path(), node))?)));
        let controls = controls.collect::<anyhow::Result<_>>()?;
        let program = directory.path().join("tripod-with-faults");
        std::fs::write(&program, launcher(binary, &library, directory.path(), logs_writes))?;
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
        Ok(Self { program, controls, logs_writes, directory })
    }

    /// A program with the command line of `tripod server`, which it becomes with the library loaded.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The controls of `node`.
    ///
    /// # Errors
    /// There is no such node.
    pub fn node(&self, node: u64) -> anyhow::Result<&Controls> {
        self.controls.get(&node).with_context(|| format!("there is no node {node}"))
    }

    /// Cuts the power of `nodes` without a disk of their own: kills them, and takes back what `mercy` says of
    /// what they had written and not flushed. Gives what was taken from each. Blocks.
    ///
    /// # Errors
    /// The nodes were not prepared for cuts, or something failed; the run is void then.
    pub fn cut(
        &self,
        cluster: &mut Cluster,
        nodes: &[u64],
        mercy: Mercy,
        random: &mut impl Rng,
    ) -> anyhow::Result<Vec<Taken>> {
        anyhow::ensure!(self.logs_writes, "the nodes do not log what they write");
        for node in nodes {
            if cluster.process(*node).is_ok() {
                cluster.kill(*node)?;
            }
        }
        let take = |node: &u64| {
            unflushed::take_back(&self.directory.path().join(format!("unflushed-{node}")), mercy, random)
        };
        nodes.iter().map(take).collect()
    }

    /// Ends the faults of every node.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn heal(&self) -> anyhow::Result<()> {
        self.controls.values().try_for_each(Controls::heal)
    }
}

fn control(directory: &Path, node: u64) -> PathBuf {
    directory.join(format!("control-{node}"))
}

/// A script that becomes the node: `exec` keeps the process id, so that signals reach the node itself. Only
/// `server --node ID --data DIRECTORY` has controls. The directory must be there before the node, so that the
/// library knows its real path.
fn launcher(binary: &Path, library: &Path, directory: &Path, logs_writes: bool) -> String {
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    let (binary, library, directory) = (quoted(binary), quoted(library), quoted(directory));
    let log = format!(
        "mkdir -p \"$5\"\n\
         export TRIPOD_UNFLUSHED_LOG={directory}/unflushed-\"$3\" TRIPOD_UNFLUSHED_DIRECTORY=\"$5\"\n"
    );
    format!(
        "#!/bin/sh\n\
         [ \"$1 $2 $4\" = 'server --node --data' ] || exec {binary} \"$@\"\n\
         {}TRIPOD_FAULT_CONTROL={directory}/control-\"$3\" LD_PRELOAD={library} exec {binary} \"$@\"\n",
        if logs_writes { log.as_str() } else { "" },
    )
}
