//! What a gang takes of its nodes: memory and disk.

use std::collections::BTreeMap;

use tripod_processes::cluster::{Cluster, NodeProcess};

use crate::disk::held_bytes;

/// What the nodes have taken since it began.
pub(super) struct Usage {
    /// The most resident memory of any process of a node, in bytes.
    peaks: BTreeMap<u64, u64>,
    /// What a node held on disk before, in bytes.
    held: BTreeMap<u64, u64>,
}

/// The figures, each of the node that took most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used {
    pub(super) peak_mb: f64,
    pub(super) resident_mb: f64,
    pub(super) disk_bytes: f64,
}

impl Usage {
    /// From now on.
    pub(super) fn begin(cluster: &Cluster) -> anyhow::Result<Self> {
        for node in cluster.ids() {
            cluster.process(node)?.forget_resident_max()?;
        }
        Ok(Self { peaks: BTreeMap::new(), held: held(cluster)? })
    }

    /// Looks at the processes that run: before one of them is ended.
    pub(super) fn note(&mut self, cluster: &Cluster) -> anyhow::Result<()> {
        for (node, bytes) in of_all(cluster, NodeProcess::resident_max_bytes)? {
            let peak = self.peaks.entry(node).or_default();
            *peak = bytes.max(*peak);
        }
        Ok(())
    }

    /// What was taken until now.
    pub(super) fn end(mut self, cluster: &Cluster) -> anyhow::Result<Used> {
        self.note(cluster)?;
        let grown = held(cluster)?.into_iter().map(|(node, bytes)| {
            let before = self.held.get(&node).copied().unwrap_or_default();
            bytes.saturating_sub(before)
        });
        let resident = of_all(cluster, NodeProcess::resident_bytes)?;
        Ok(Used {
            peak_mb: most(self.peaks.into_values()) / 1e6,
            resident_mb: most(resident.into_values()) / 1e6,
            disk_bytes: most(grown),
        })
    }
}

fn held(cluster: &Cluster) -> anyhow::Result<BTreeMap<u64, u64>> {
    cluster.ids().map(|node| Ok((node, held_bytes(&cluster.root().join(format!("node-{node}")))?))).collect()
}

/// A figure of each node.
fn of_all(
    cluster: &Cluster,
    figure: impl Fn(&NodeProcess) -> anyhow::Result<u64>,
) -> anyhow::Result<BTreeMap<u64, u64>> {
    cluster.ids().map(|node| Ok((node, figure(cluster.process(node)?)?))).collect()
}

fn most(figures: impl Iterator<Item = u64>) -> f64 {
    figures.max().unwrap_or(0) as f64
}
