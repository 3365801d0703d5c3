//! A cluster with the program on it, and who is attached to whom.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use tripod_processes::cluster::Cluster;
use tripod_processes::cluster::connections::connections_to;

use super::program::{Manners, Program};

/// How the processes of the program reach the nodes.
pub(crate) trait Way {
    /// Where each process finds the coordination service, in its own words.
    fn addresses(&self) -> Vec<String>;

    /// By the place of each process that runs: the process that is connected to a node for it.
    fn connected(&self, program: &mut Program) -> Vec<(usize, u32)>;

    /// The port at which they find a node.
    fn port(&self, cluster: &Cluster, node: u64) -> Result<u16>;
}

/// A cluster, and the program on it.
pub(crate) struct Stage<W> {
    // Fields drop in this order: clients go first.
    pub(crate) program: Program,
    pub(crate) way: W,
    pub(crate) cluster: Cluster,
    /// How often each process has lost its node since [`Self::check_cuts`] looked last.
    lost: Vec<usize>,
    /// How many of its calls were cut then.
    cut: Vec<usize>,
}

impl<W: Way> Stage<W> {
    /// Starts the program and waits until it trains.
    pub(crate) async fn set(
        cluster: Cluster,
        way: W,
        python: &Path,
        folder: &Path,
        manners: &Manners,
    ) -> Result<Self> {
        let addresses = way.addresses();
        let mut program = Program::start(python, folder, manners, &addresses)?;
        program.under_way().await?;
        let none = vec![0; addresses.len()];
        Ok(Self { program, way, cluster, lost: none.clone(), cut: none })
    }

    /// The nodes that processes are attached to, with the places of those.
    pub(crate) fn attached(&mut self) -> Result<BTreeMap<u64, Vec<usize>>> {
        let connected = self.way.connected(&mut self.program);
        let mut nodes: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for node in self.cluster.ids() {
            let port = self.way.port(&self.cluster, node)?;
            for (place, pid) in &connected {
                if connections_to(*pid, port)? > 0 {
                    nodes.entry(node).or_default().push(*place);
                }
            }
        }
        Ok(nodes)
    }

    /// The node with most processes, and how many they are.
    pub(crate) fn most_attached(&mut self) -> Result<(u64, usize)> {
        let attached = self.attached()?;
        let counts = attached.into_iter().map(|(node, places)| (places.len(), node));
        let (count, node) = counts.max().context("nobody is connected to any node")?;
        Ok((node, count))
    }

    /// Kills a node.
    pub(crate) fn kill(&mut self, node: u64) -> Result<()> {
        for place in self.attached()?.remove(&node).unwrap_or_default() {
            self.lost[place] += 1;
        }
        self.cluster.kill(node)
    }

    /// Starts a killed node and waits until the cluster is whole.
    pub(crate) async fn bring_back(&mut self, node: u64) -> Result<()> {
        self.cluster.restart(node)?;
        self.cluster.wait_until_ready().await
    }

    /// How often each process has lost its node.
    pub(crate) fn lost(&self) -> &[usize] {
        &self.lost
    }

    /// Checks that of each process at most the call was cut that was in flight when its node was lost, and
    /// none where no call was in flight. Counts anew from here on.
    pub(crate) fn check_cuts(&mut self, in_flight: bool) -> Result<()> {
        let cut = self.program.cut_calls();
        for (place, (now, before)) in cut.iter().zip(&self.cut).enumerate() {
            let (cut, lost) = (now - before, self.lost[place]);
            let allowed = if in_flight { lost } else { 0 };
            ensure!(
                cut <= allowed,
                "{cut} calls of process {place} were cut, which lost its node {lost} times"
            );
        }
        self.cut = cut;
        self.lost.fill(0);
        Ok(())
    }
}
