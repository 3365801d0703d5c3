//! A disk for each of a cluster's nodes, and the power that goes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;

use super::disk::{Disk, FileSystem};
use super::toolchain;
use crate::cluster::{Cluster, NodeProcess};

/// The disks of some or all nodes of one cluster.
#[derive(Debug)]
pub struct Disks {
    disks: BTreeMap<u64, Disk>,
    cutter: Option<PathBuf>,
    _directory: tempfile::TempDir,
}

impl Disks {
    /// Gives each of `nodes`, none of which has been started yet, a disk of `bytes` bytes; the data directory
    /// in the cluster's becomes a link to it. Blocks.
    ///
    /// # Errors
    /// [`Skip`](super::Skip) where this machine or user cannot; else what went wrong.
    pub fn mount(
        cluster: &Cluster,
        nodes: impl IntoIterator<Item = u64>,
        file_system: FileSystem,
        bytes: u64,
    ) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("tripod-cut-").tempdir()?;
        let cutter = match file_system {
            FileSystem::Ext4 => Some(toolchain::build_cut(directory.path())?),
            FileSystem::Tmpfs => None,
        };
        let mut disks = BTreeMap::new();
        for node in nodes {
            let disk = Disk::mount(file_system, bytes)?;
            let place = cluster.root().join(format!("node-{node}"));
            // A link, so that whoever removes the cluster's directory does not walk into a mounted disk.
            std::os::unix::fs::symlink(disk.data(), &place)
                .with_context(|| format!("cannot link {}", place.display()))?;
            disks.insert(node, disk);
        }
        Ok(Self { disks, cutter, _directory: directory })
    }

    /// The disk of `node`.
    ///
    /// # Errors
    /// The node has none.
    pub fn of(&self, node: u64) -> anyhow::Result<&Disk> {
        self.disks.get(&node).with_context(|| format!("node {node} has no disk of its own"))
    }

    /// Cuts the power of `nodes` at this instant: all processes within microseconds, and then the disks. They
    /// can be started again afterwards. Nodes that do not run lose their power too. Blocks.
    ///
    /// # Errors
    /// The disks are not ext4, or something failed; the run is void then.
    pub fn cut(&self, cluster: &mut Cluster, nodes: &[u64]) -> anyhow::Result<()> {
        let cutter = self.cutter.as_ref().context("only ext4 can lose its power")?;
        let mut command = Command::new(cutter);
        for node in nodes {
            let pid = cluster.process(*node).map_or(0, NodeProcess::pid);
            command.arg(pid.to_string()).arg(self.of(*node)?.root());
        }
        let done = command.output().context("cannot run the program that cuts the power")?;
        anyhow::ensure!(done.status.success(), "power cut: {}", String::from_utf8_lossy(&done.stderr).trim());
        for node in nodes {
            if cluster.process(*node).is_ok() {
                cluster.kill(*node)?;
            }
            self.of(*node)?
                .mount_again()
                .with_context(|| format!("the disk of node {node} after the cut"))?;
        }
        Ok(())
    }
}
