//! The cluster, or the way to it, does not answer for a while.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tripod_processes::cluster::Cluster;
use tripod_tests::wait::scaled;

use super::agents::{self, Setup};
use super::swallow::Path as SwallowingPath;
use crate::cases::directed::program::Program;
use crate::cases::nodes_in;

/// Shorter than the faults, so that clients without agents would be given up.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long the whole cluster is away.
const OUTAGE: Duration = Duration::from_secs(15);
/// How long one node is frozen, or the way to it is silent.
const SILENCE: Duration = Duration::from_secs(20);
/// The longest call of the program while one node is silent: the agent has to notice, and the others may
/// have to elect a leader.
const NOTICE: Duration = Duration::from_secs(8);
/// It cannot notice at once: if all calls are shorter, nobody used the node.
const UNUSED: Duration = Duration::from_millis(500);

/// All nodes are killed and stay away for longer than the heartbeat timeout.
pub(super) async fn whole_cluster(python: &Path, folder: &Path) -> Result<String> {
    let mut stage = agents::stage(python, folder, &Setup::beating(HEARTBEAT)).await?;
    let mark = stage.program.mark();
    stage.cluster.kill_all()?;
    // Nothing is waited for here: the length of the outage is the fault.
    tokio::time::sleep(OUTAGE).await;
    let nodes: Vec<u64> = stage.cluster.ids().collect();
    for node in nodes {
        stage.cluster.restart(node)?;
    }
    let back = Instant::now();
    stage.program.go_on().await?;
    let after_ms = back.elapsed().as_millis();
    let longest_ms = stage.program.longest_ms_since(&mark);
    // All of them may have been between two calls for a while when the nodes were killed.
    ensure!(u128::from(longest_ms) >= OUTAGE.as_millis() / 2, "calls went on without a cluster");
    stage.program.finish().await?;
    Ok(format!("no call failed; longest call {longest_ms} ms, two steps {after_ms} ms after the start"))
}

/// The node that agents are attached to keeps its connections and does nothing.
pub(super) async fn frozen_node(python: &Path, folder: &Path) -> Result<String> {
    let mut stage = agents::stage(python, folder, &Setup::beating(HEARTBEAT)).await?;
    let (victim, attached) = stage.most_attached()?;
    let mark = stage.program.mark();
    stage.cluster.pause(victim)?;
    let longest_ms = go_on_for(&mut stage.program, &mark).await?;
    stage.cluster.resume(victim)?;
    stage.cluster.wait_until_ready().await?;
    stage.program.go_on().await?;
    stage.program.finish().await?;
    Ok(format!("no call failed; longest call {longest_ms} ms, {attached} agents were attached"))
}

/// The way to the node that agents are attached to swallows everything.
pub(super) async fn silent_network(python: &Path, folder: &Path) -> Result<String> {
    // Members are told at the paths' address, or agents would learn to go round them.
    let host = SwallowingPath::HOST;
    let cluster = Cluster::start(nodes_in(folder)?.with_args(["--advertise", host])).await?;
    let mut paths = Vec::new();
    for node in cluster.endpoints() {
        paths.push(SwallowingPath::open(&node).await?);
    }
    let nodes: Vec<String> = paths.iter().map(|path| path.address().to_owned()).collect();
    let setup = Setup::beating(HEARTBEAT);
    let mut stage = agents::stage_on(cluster, &nodes, python, folder, &setup).await?;
    let used = paths.iter().max_by_key(|path| path.connections()).context("a cluster without nodes")?;
    let attached = used.connections();
    ensure!(attached > 0, "no agent takes a path of ours");
    let mark = stage.program.mark();
    used.swallow(true);
    let longest_ms = go_on_for(&mut stage.program, &mark).await?;
    used.swallow(false);
    stage.program.go_on().await?;
    stage.program.finish().await?;
    Ok(format!("no call failed; longest call {longest_ms} ms, {attached} connections fell silent"))
}

/// Trains on for as long as the silence lasts; the longest call in that time.
async fn go_on_for(program: &mut Program, mark: &[usize]) -> Result<u64> {
    let begin = Instant::now();
    while begin.elapsed() < SILENCE {
        program.go_on().await?;
    }
    let longest_ms = program.longest_ms_since(mark);
    let (longest, notice) = (Duration::from_millis(longest_ms), scaled(NOTICE));
    ensure!(
        (UNUSED..=notice).contains(&longest),
        "the longest call took {longest:?}, not {UNUSED:?} to {notice:?}"
    );
    Ok(longest_ms)
}
