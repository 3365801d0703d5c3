//! A cluster with a program behind agents, and who is attached to whom.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tripod_chaos::cluster::Agent;
use tripod_chaos::cluster::connections::connections_to;
use tripod_chaos::cluster::{Cluster, ClusterOptions};
use tripod_tests::jobs::port_of;
use tripod_tests::wait;

use super::training::{Manners, Training};

/// How long an agent may take to leave a node that is gone.
const ATTACH_LIMIT: Duration = Duration::from_secs(20);

/// A cluster, and the program on it.
pub(super) struct Stage {
    // Fields drop in this order: clients go first.
    pub(super) training: Training,
    pub(super) cluster: Cluster,
}

impl Stage {
    /// Starts both and waits until the program trains.
    pub(super) async fn set(
        python: &Path,
        folder: &Path,
        manners: impl FnOnce(Vec<String>) -> Manners,
    ) -> Result<Self> {
        let cluster = Cluster::start(ClusterOptions::tripod()?).await?;
        let manners = manners(cluster.endpoints());
        let mut training = Training::start(python, folder, &manners).await?;
        training.under_way().await?;
        Ok(Self { training, cluster })
    }

    /// The nodes that agents are connected to, every one once.
    pub(super) fn attached(&self) -> Result<BTreeSet<u64>> {
        let mut nodes = BTreeSet::new();
        for agent in &self.training.agents {
            nodes.extend(self.nodes_of(agent)?);
        }
        Ok(nodes)
    }

    /// The node with most agents, and how many they are.
    pub(super) fn most_attached(&self) -> Result<(u64, usize)> {
        let mut all = Vec::new();
        for agent in &self.training.agents {
            all.extend(self.nodes_of(agent)?);
        }
        let counts =
            self.cluster.ids().map(|node| (all.iter().filter(|other| **other == node).count(), node));
        let (count, node) = counts.max().context("a cluster without nodes")?;
        ensure!(count > 0, "no agent is connected to any node");
        Ok((node, count))
    }

    /// Waits until every agent is connected to a node, and none to `gone`.
    pub(super) async fn leave(&self, gone: u64) -> Result<()> {
        wait::until("the agents' way to another node", ATTACH_LIMIT, || {
            for agent in &self.training.agents {
                let nodes = self.nodes_of(agent)?;
                if nodes.is_empty() || nodes.contains(&gone) {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        })
        .await
    }

    /// Starts a killed node and waits until the cluster is whole.
    pub(super) async fn bring_back(&mut self, node: u64) -> Result<()> {
        self.cluster.restart(node)?;
        self.cluster.wait_until_ready().await
    }

    fn nodes_of(&self, agent: &Agent) -> Result<Vec<u64>> {
        let mut nodes = Vec::new();
        for node in self.cluster.ids() {
            if connections_to(agent.pid(), port_of(&self.cluster.endpoint(node))?)? > 0 {
                nodes.push(node);
            }
        }
        Ok(nodes)
    }
}
