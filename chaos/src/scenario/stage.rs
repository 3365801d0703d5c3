//! The cluster of a run, with whatever its faults need.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::run::Options;
use super::{Scenario, UPGRADE, upgrade};
use tripod_processes::attack;
use tripod_processes::cluster::{Cluster, ClusterOptions, Kind, Peers, find_tripod};
use tripod_processes::fault::storage::{Disks, FileSystem, Shim};
use tripod_processes::fault::{Arena, Builds};

/// Room on a node's own disk for a journal of full length, sled and snapshots.
const DISK_BYTES: u64 = 512 << 20;
/// Machines whose nodes join, when members change.
const SPARES: u64 = 2;

/// A cluster that is about to be disturbed.
pub(super) struct Stage {
    // Fields drop in this order: the processes end before their disks go.
    pub(super) peers: Option<Peers>,
    pub(super) cluster: Cluster,
    disks: Option<Disks>,
    /// Whether nodes come and go.
    members_change: bool,
    shim: Option<Shim>,
    /// The build that the nodes are at first, if they are upgraded.
    before: Option<PathBuf>,
    /// The nodes' data and logs.
    pub(super) data: PathBuf,
}

impl Stage {
    /// Makes everything that the scenario needs, below `out`, and starts no process yet.
    ///
    /// # Errors
    /// [`tripod_processes::fault::storage::Skip`] if this machine or user cannot; else what went wrong.
    pub(super) fn prepare(scenario: &Scenario, options: &Options, out: &Path) -> anyhow::Result<Self> {
        let mut nodes = ClusterOptions::tripod()?;
        let before = match (&options.before, scenario.upgrades()) {
            (Some(before), true) => Some(upgrade::existing(before)?),
            (None, false) => None,
            (None, true) => anyhow::bail!(
                "{} needs a build to upgrade from; next: --before PATH, the `tripod` of the release before",
                scenario.name
            ),
            (Some(_), false) => anyhow::bail!(
                "--before is for `{UPGRADE}`; {} has nodes of one build; next: leave it out",
                scenario.name
            ),
        };
        if let Some(before) = &before {
            nodes.kind = Kind::Tripod { binary: before.clone() };
        }
        let shim = if scenario.needs_library() {
            Some(Shim::prepare_for_cuts(&find_tripod()?, options.nodes)?)
        } else {
            None
        };
        if let Some(shim) = &shim {
            nodes.kind = Kind::Tripod { binary: shim.program().to_owned() };
        }
        if scenario.has_attackers() {
            nodes = nodes.with_args(attack::NODE_ARGS);
        }
        if scenario.has_mindspore() {
            nodes = nodes.with_mindspore();
        }
        let data = out.join("cluster");
        // Data of an earlier run would be another cluster's.
        let free = !data.exists();
        anyhow::ensure!(free, "{} exists; remove it or choose another --out", data.display());
        std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
        let cluster = Cluster::prepare(ClusterOptions {
            nodes: options.nodes,
            spares: if scenario.changes_members() { SPARES } else { 0 },
            data: Some(data.clone()),
            proxied: true,
            ..nodes
        })?;
        let disks = if scenario.needs_disks() {
            Some(Disks::mount(&cluster, cluster.ids(), FileSystem::Ext4, DISK_BYTES)?)
        } else {
            None
        };
        let members_change = scenario.changes_members();
        Ok(Self { peers: None, cluster, disks, members_change, shim, before, data })
    }

    /// Starts the scheduler's workers and stores.
    ///
    /// # Errors
    /// A process cannot be started.
    pub(super) fn start_peers(&mut self) -> anyhow::Result<&Peers> {
        let peers = Peers::start_all(&self.cluster, &self.data.join("peers"))?;
        Ok(self.peers.insert(peers))
    }

    /// The same for Mars.
    ///
    /// # Errors
    /// As [`Self::start_peers`].
    pub(super) fn start_mars(&mut self) -> anyhow::Result<()> {
        self.peers = Some(Peers::start_mars(&self.cluster, &self.data.join("peers"))?);
        Ok(())
    }

    /// The build that the nodes are at first, if they are upgraded.
    pub(super) fn before(&self) -> Option<&Path> {
        self.before.as_deref()
    }

    /// The cluster as faults see it, when none of them has happened.
    ///
    /// # Errors
    /// There is no program to upgrade to.
    pub(super) fn arena(&mut self) -> anyhow::Result<Arena<'_>> {
        let builds = match self.before {
            Some(_) => Some(Builds::before(self.cluster.ids(), find_tripod()?)),
            None => None,
        };
        let mut arena = Arena::new(&mut self.cluster, self.shim.as_ref(), self.disks.as_ref());
        arena.members_change = self.members_change;
        arena.peers = self.peers.as_mut();
        arena.builds = builds;
        Ok(arena)
    }

    /// Ends what still runs, and keeps the data and logs or removes them.
    ///
    /// # Errors
    /// They cannot be copied or removed.
    pub(super) fn close(self, keep: bool) -> anyhow::Result<()> {
        let Self { peers, cluster, disks, data, .. } = self;
        drop(peers);
        let nodes = cluster.ids();
        drop(cluster);
        if !keep {
            return std::fs::remove_dir_all(&data)
                .with_context(|| format!("cannot remove {}", data.display()));
        }
        let Some(disks) = disks else { return Ok(()) };
        // The disks go with the run, so what lies on them takes the place of the links to it.
        for node in nodes {
            let place = data.join(format!("node-{node}"));
            std::fs::remove_file(&place).with_context(|| format!("cannot remove {}", place.display()))?;
            let from = disks.of(node)?.data();
            let copied = std::process::Command::new("cp").arg("-a").arg(from).arg(&place).output()?;
            anyhow::ensure!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr).trim());
        }
        Ok(())
    }
}
