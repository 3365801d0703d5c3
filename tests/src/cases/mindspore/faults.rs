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

/// What workers take for their scheduler.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scheduler {
    Node,
    Agent,
}

/// A gang whose workers are connected to a node that does not lead, or to an agent that uses it.
async fn beside_leader(python: &Path, folder: &Path, scheduler: Scheduler) -> Result<(Gang, u64)> {
    let mut gang = Gang::new(python, folder).await?;
    let node = beside(&mut gang).await?;
    match scheduler {
        Scheduler::Node => gang.begin(node).await?,
        Scheduler::Agent => gang.begin_at_agent(node).await?,
    }
    Ok((gang, node))
}

/// A node that does not lead.
async fn beside(gang: &mut Gang) -> Result<u64> {
    let leader = gang.cluster.wait_for_leader().await?;
    gang.cluster.ids().find(|node| *node != leader).context("no other node")
}

pub(super) async fn undisturbed(python: &Path, folder: &Path, scheduler: Scheduler) -> Result<String> {
    let (mut gang, _) = beside_leader(python, folder, scheduler).await?;
    gang.go_on_for_a_minute().await?;
    gang.finish().await
}

/// This one is in every run, and takes no minute.
pub(super) async fn leader_killed(python: &Path, folder: &Path) -> Result<String> {
    let (mut gang, node) = beside_leader(python, folder, Scheduler::Node).await?;
    leader::kill_leader_but(&mut gang.cluster, node).await?;
    gang.go_on().await?;
    gang.finish().await
}

pub(super) async fn attached_killed(python: &Path, folder: &Path) -> Result<String> {
    let (mut gang, node) = beside_leader(python, folder, Scheduler::Node).await?;
    bounce(&mut gang, &[node], Duration::ZERO).await?;
    gang.go_on_for_a_minute().await?;
    gang.finish().await
}

pub(super) async fn agent(python: &Path, folder: &Path) -> Result<String> {
    let (gang, node) = beside_leader(python, folder, Scheduler::Agent).await?;
    behind_agent(gang, node).await
}

pub(super) async fn launcher(python: &Path, folder: &Path) -> Result<String> {
    let mut gang = Gang::new(python, folder).await?;
    let node = beside(&mut gang).await?;
    gang.begin_by_launcher(node).await?;
    behind_agent(gang, node).await
}

/// The leader dies, comes back, and then the node that the agent uses dies and does not.
async fn behind_agent(mut gang: Gang, node: u64) -> Result<String> {
    let dead = leader::kill_leader_but(&mut gang.cluster, node).await?;
    gang.go_on().await?;
    gang.cluster.restart(dead)?;
    gang.cluster.wait_until_ready().await?;
    gang.cluster.kill(node)?;
    gang.go_on_for_a_minute().await?;
    gang.finish().await
}

pub(super) async fn away(python: &Path, folder: &Path, scheduler: Scheduler) -> Result<String> {
    let (mut gang, _) = beside_leader(python, folder, scheduler).await?;
    let all: Vec<u64> = gang.cluster.ids().collect();
    bounce(&mut gang, &all, AWAY).await?;
    gang.go_on_for_a_minute().await?;
    gang.finish().await
}

pub(super) async fn rounds(python: &Path, folder: &Path, scheduler: Scheduler) -> Result<String> {
    let (mut gang, node) = beside_leader(python, folder, scheduler).await?;
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
    gang.go_on_for_a_minute().await?;
    gang.finish().await
}

/// A worker dies and comes back with its node id: it gets the rank that it had, though every node has died meanwhile. The
/// other one is not asked to do more than to wait: MindSpore's AllReduce does not go on with a process that came back.
pub(super) async fn recovery(python: &Path, folder: &Path) -> Result<String> {
    let (mut gang, node) = beside_leader(python, folder, Scheduler::Node).await?;
    let all: Vec<u64> = gang.cluster.ids().collect();
    for id in 0..WORKERS {
        gang.kill_worker(id);
        bounce(&mut gang, &all, Duration::ZERO).await?;
        gang.start_again(id, node)?;
        let begun = gang.worker(id).wait_for_step(AGAIN_LIMIT, |step| step["step"] == "initialized").await?;
        ensure!(begun["rank"].as_u64() == u64::try_from(id).ok(), "worker {id} came back as {begun}");
    }
    Ok("both got their ranks back from nodes that had died, too".to_owned())
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
