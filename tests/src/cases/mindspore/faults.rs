//! What happens to the nodes, and to a worker.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::gang::{Gang, WORKERS};
use crate::cases::leader;

/// How long everybody is away.
const AWAY: Duration = Duration::from_secs(10);
const ROUNDS: usize = 5;
/// A worker that begins again meets the other one and is told its rank.
const AGAIN_LIMIT: Duration = Duration::from_secs(240);

/// A gang whose workers are connected to a node that does not lead.
async fn beside_leader(python: &Path, folder: &Path) -> Result<(Gang, u64)> {
    let mut gang = Gang::new(python, folder).await?;
    let leader = gang.cluster.wait_for_leader().await?;
    let node = gang.cluster.ids().find(|node| *node != leader).context("no other node")?;
    gang.begin(node).await?;
    Ok((gang, node))
}

pub(super) async fn undisturbed(python: &Path, folder: &Path) -> Result<String> {
    let (mut gang, _) = beside_leader(python, folder).await?;
    gang.go_on().await?;
    gang.finish().await
}

pub(super) async fn leader_killed(python: &Path, folder: &Path) -> Result<String> {
    let (mut gang, node) = beside_leader(python, folder).await?;
    leader::kill_leader_but(&mut gang.cluster, node).await?;
    gang.go_on().await?;
    gang.finish().await
}

pub(super) async fn attached_killed(python: &Path, folder: &Path) -> Result<String> {
    let (mut gang, node) = beside_leader(python, folder).await?;
    bounce(&mut gang, &[node], Duration::ZERO).await?;
    gang.go_on().await?;
    gang.finish().await
}

/// The leader dies, comes back, and then the node that the agent uses dies and does not.
pub(super) async fn agent(python: &Path, folder: &Path) -> Result<String> {
    let mut gang = Gang::new(python, folder).await?;
    let leader = gang.cluster.wait_for_leader().await?;
    let node = gang.cluster.ids().find(|node| *node != leader).context("no other node")?;
    gang.begin_at_agent(node).await?;
    let dead = leader::kill_leader_but(&mut gang.cluster, node).await?;
    gang.go_on().await?;
    gang.cluster.restart(dead)?;
    gang.cluster.wait_until_ready().await?;
    gang.cluster.kill(node)?;
    gang.go_on().await?;
    gang.finish().await
}

pub(super) async fn away(python: &Path, folder: &Path) -> Result<String> {
    let (mut gang, _) = beside_leader(python, folder).await?;
    let all: Vec<u64> = gang.cluster.ids().collect();
    bounce(&mut gang, &all, AWAY).await?;
    gang.go_on().await?;
    gang.finish().await
}

pub(super) async fn rounds(python: &Path, folder: &Path) -> Result<String> {
    let (mut gang, node) = beside_leader(python, folder).await?;
    let all: Vec<u64> = gang.cluster.ids().collect();
    for _ in 0..ROUNDS {
        let dead = leader::kill_leader_but(&mut gang.cluster, node).await?;
        gang.go_on().await?;
        gang.cluster.restart(dead)?;
        gang.cluster.wait_until_ready().await?;
        bounce(&mut gang, &[node], Duration::ZERO).await?;
        gang.go_on().await?;
        bounce(&mut gang, &all, AWAY).await?;
        gang.go_on().await?;
    }
    gang.finish().await
}

/// A worker dies and comes back with its node id: it gets the rank that it had. The other one is not asked to do more than
/// to wait: MindSpore's AllReduce does not go on with a process that came back.
pub(super) async fn recovery(python: &Path, folder: &Path) -> Result<String> {
    let (mut gang, node) = beside_leader(python, folder).await?;
    for id in 0..WORKERS {
        gang.kill_worker(id);
        gang.start_again(id, node)?;
        let begun = gang.worker(id).wait_for_step(AGAIN_LIMIT, |step| step["step"] == "initialized").await?;
        ensure!(begun["rank"].as_u64() == u64::try_from(id).ok(), "worker {id} came back as {begun}");
    }
    Ok("both got their ranks back".to_owned())
}

/// Kills these nodes and starts them again after a while.
async fn bounce(gang: &mut Gang, nodes: &[u64], away: Duration) -> Result<()> {
    for node in nodes {
        gang.cluster.kill(*node)?;
    }
    // The length of the outage is what the test is about.
    tokio::time::sleep(away).await;
    for node in nodes {
        gang.cluster.restart(*node)?;
    }
    gang.cluster.wait_until_ready().await
}
