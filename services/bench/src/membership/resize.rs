//! Three nodes become five and three others, again and again, and nodes are killed meanwhile: no client behind an
//! agent may notice.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use tripod_client::wire::change_members_request::Change;

use super::clients::Clients;
use super::{Goal, Row, operator};
use tripod_processes::cluster::Cluster;

/// Members at most, and machines.
const MOST: u64 = 5;
/// Acknowledged calls between two changes.
const BETWEEN: u64 = 50;
const PATIENCE: Duration = Duration::from_secs(120);

/// The cluster, and which node is on which machine.
struct Stage {
    cluster: Cluster,
    /// Ids by machine.
    nodes: BTreeMap<u64, u64>,
    clients: Clients,
}

/// Goes from three nodes to five and back so many times.
pub(super) async fn run(times: u64) -> anyhow::Result<Vec<Row>> {
    let folder = tempfile::tempdir().context("a directory for the agents' logs")?;
    let cluster = operator::three_and(MOST - 3).await?;
    let endpoints: Vec<String> = (1..=3).map(|node| cluster.endpoint(node)).collect();
    let clients = Clients::start(&endpoints, folder.path()).await?;
    let mut stage = Stage { cluster, nodes: (1..=3).map(|node| (node, node)).collect(), clients };
    for number in 1..=times {
        stage.grow(number).await.with_context(|| format!("time {number}: growing"))?;
        stage.shrink().await.with_context(|| format!("time {number}: shrinking"))?;
        eprintln!("three to five and back: {number} of {times}");
    }
    let left: Vec<String> = stage.nodes.keys().map(|machine| stage.cluster.endpoint(*machine)).collect();
    let outcome = stage.clients.stop(&left).await?;
    for why in outcome.failed.iter().take(3) {
        eprintln!("error: {why}");
    }
    let none = Some(Goal::AtMost(0.0));
    Ok(vec![
        Row::new("three to five and back under kills: calls behind agents", outcome.calls as f64, "", None),
        Row::new("of which failed", outcome.failed.len() as f64, "", none),
        Row::new("acknowledged and lost", outcome.lost as f64, "", none),
    ])
}

impl Stage {
    /// Two nodes join and vote; in between a node is killed and started again.
    async fn grow(&mut self, number: u64) -> anyhow::Result<()> {
        let free: Vec<u64> = (1..=MOST).filter(|machine| !self.nodes.contains_key(machine)).collect();
        for (place, machine) in free.into_iter().enumerate() {
            let node = operator::join(&mut self.cluster, machine).await?;
            self.nodes.insert(machine, node);
            if place == 0 {
                self.kill_one(number).await?;
            }
            operator::change(&mut self.cluster, Change::Promote(node)).await?;
            self.clients.go_on(BETWEEN, PATIENCE).await?;
        }
        Ok(())
    }

    /// The two nodes leave that are there for the longest time; with the smallest id, that is.
    async fn shrink(&mut self) -> anyhow::Result<()> {
        for _ in 0..2 {
            let oldest = self.nodes.iter().min_by_key(|(_, node)| **node);
            let (machine, node) =
                oldest.map(|(machine, node)| (*machine, *node)).context("there are nodes")?;
            operator::change(&mut self.cluster, Change::Remove(node)).await?;
            operator::vacate(&mut self.cluster, machine).await?;
            self.nodes.remove(&machine);
            self.clients.go_on(BETWEEN, PATIENCE).await?;
        }
        Ok(())
    }

    /// The leader every other time, else somebody else.
    async fn kill_one(&mut self, number: u64) -> anyhow::Result<()> {
        let leader = self.cluster.wait_for_leader().await?;
        let other = self.nodes.keys().copied().find(|machine| *machine != leader).context("another node")?;
        let killed = if number.is_multiple_of(2) { other } else { leader };
        self.cluster.kill(killed)?;
        self.clients.go_on(BETWEEN, PATIENCE).await?;
        self.cluster.restart(killed)?;
        self.cluster.wait_until_ready().await
    }
}
