//! The scenarios: each starts a cluster and the program, disturbs them at a step, and looks whether
//! anything was lost.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tripod_client::{Client, Condition, Consistency};
use tripod_processes::cluster::Cluster;
use tripod_tests::jobs::{self, Poll, port_of};
use tripod_tests::wait::scaled;

use super::training::{HEARTBEAT, Manners, TASKS, Training};
use crate::cases::nodes_in;

const JOB: &str = "train";
/// The step at which nodes are killed: the program is well under way.
const FAULT_AT: u64 = 5;
/// Within this time the last of three nodes must have been hit after the first: no election fits into it. The
/// loop itself takes microseconds, but this process may have to wait for a processor in it.
const AT_ONCE: Duration = Duration::from_millis(100);
/// Within this time all of them must run again.
const AGAIN: Duration = Duration::from_secs(3);
/// Within this time a node that is told to stop must have ended.
const STOP_LIMIT: Duration = Duration::from_secs(4);

/// How long leadership may take to come to a node on a busy machine.
const LEAD_LIMIT: Duration = Duration::from_secs(60);

const REPEATING: Manners = Manners { repeat_cut_calls: true, ..Manners::PLAIN };

/// A cluster with a job for the program.
struct Stage {
    cluster: Cluster,
    client: Client,
    /// The job's address at each node, by id.
    addresses: Vec<String>,
}

impl Stage {
    async fn set(folder: &Path, poll: Poll) -> Result<Self> {
        let cluster = Cluster::start(nodes_in(folder)?).await?;
        let client = jobs::client(&cluster.endpoints())?;
        jobs::create(&client, JOB, &jobs::spec(TASKS, HEARTBEAT, poll)?).await?;
        let addresses = jobs::addresses(&client, JOB, u64::try_from(cluster.ids().count())?).await?;
        Ok(Self { cluster, client, addresses })
    }

    /// Brings leadership to that node, if it went elsewhere while the program started.
    async fn lead(&mut self, node: u64) -> Result<()> {
        let begin = Instant::now();
        loop {
            let now = self.cluster.wait_for_leader().await?;
            if now == node {
                return Ok(());
            }
            ensure!(
                begin.elapsed() < scaled(LEAD_LIMIT),
                "node {node} does not get leadership back from node {now}"
            );
            // Whether it worked is seen by who leads then.
            let _ = Client::transfer_leader(&self.cluster.endpoint(now), Some(node), LEAD_LIMIT).await;
        }
    }

    fn address(&self, node: u64) -> Result<&String> {
        let position = usize::try_from(node)?.checked_sub(1).context("nodes are counted from 1")?;
        self.addresses.get(position).with_context(|| format!("the job has no address on node {node}"))
    }

    /// The addresses with that of `node` first or last.
    fn in_order(&self, node: u64, first: bool) -> Result<Vec<String>> {
        let chosen = self.address(node)?;
        let mut others: Vec<String> =
            self.addresses.iter().filter(|address| *address != chosen).cloned().collect();
        let place = if first { 0 } else { others.len() };
        others.insert(place, chosen.clone());
        Ok(others)
    }
}

/// (a) Nobody is disturbed; the job is `default`, on the client ports.
pub(super) async fn undisturbed(python: &Path, folder: &Path) -> Result<String> {
    let tasks = TASKS.to_string();
    let options = nodes_in(folder)?.with_args(["--tasks", &tasks]);
    let cluster = Cluster::start(options).await?;
    let training = Training::start(python, folder, &cluster.endpoints(), Manners::PLAIN)?;
    let repeats = training.finish().await?;
    ensure!(repeats == 0, "{repeats} calls were cut and nobody was disturbed");
    Ok("no call was cut".to_owned())
}

/// (b) The leader is killed and no client is attached to it: no call may fail at all.
pub(super) async fn leader_killed(python: &Path, folder: &Path) -> Result<String> {
    let mut stage = Stage::set(folder, Poll::Release).await?;
    let leader = stage.cluster.wait_for_leader().await?;
    let addresses = stage.in_order(leader, false)?;
    let mut training = Training::start(python, folder, &addresses, Manners::PLAIN)?;
    training.reach(FAULT_AT).await?;
    stage.lead(leader).await?;
    let attached = training.connections(port_of(stage.address(leader)?)?)?;
    ensure!(attached.iter().all(|count| *count == 0), "clients are attached to the leader: {attached:?}");
    stage.cluster.kill(leader)?;
    training.go_on().await?;
    // A call that failed would have ended its process: nothing is repeated here.
    let repeats = training.finish().await?;
    ensure!(repeats == 0, "{repeats} calls were cut");
    Ok("no call failed".to_owned())
}

/// (c) The node that all clients are attached to is killed, and it leads as well.
pub(super) async fn attached_killed(python: &Path, folder: &Path) -> Result<String> {
    let mut stage = Stage::set(folder, Poll::Release).await?;
    let leader = stage.cluster.wait_for_leader().await?;
    let addresses = stage.in_order(leader, true)?;
    let mut training = Training::start(python, folder, &addresses, REPEATING)?;
    training.reach(FAULT_AT).await?;
    let attached = training.connections(port_of(stage.address(leader)?)?)?;
    ensure!(attached.iter().all(|count| *count > 0), "not all clients are attached: {attached:?}");
    stage.lead(leader).await?;
    stage.cluster.kill(leader)?;
    training.go_on().await?;
    Ok(format!("{} calls were repeated", training.finish().await?))
}

/// (d) All nodes are killed at once and started again on their data: same job, same keys.
pub(super) async fn all_killed(python: &Path, folder: &Path) -> Result<String> {
    let mut stage = Stage::set(folder, Poll::Release).await?;
    let manners = Manners { wait_for_nodes: true, ..REPEATING };
    let mut training = Training::start(python, folder, &stage.addresses, manners)?;
    training.reach(FAULT_AT).await?;
    let before = jobs::incarnation(&stage.client, JOB).await?;
    let kv = stage.client.kv(JOB);
    let written = kv.put("witness", "of the outage".into(), Condition::CreateOnly).await?;

    let begin = Instant::now();
    for node in stage.cluster.ids() {
        let pid = i32::try_from(stage.cluster.process(node)?.pid())?;
        kill(Pid::from_raw(pid), Signal::SIGKILL)?;
    }
    let hit = begin.elapsed();
    ensure!(hit < AT_ONCE, "killing all nodes took {hit:?}, longer than {AT_ONCE:?}");
    for node in stage.cluster.ids() {
        stage.cluster.kill(node)?;
        stage.cluster.restart(node)?;
    }
    let again = begin.elapsed();
    let allowed = scaled(AGAIN);
    ensure!(again < allowed, "starting all nodes again took {again:?}, longer than {allowed:?}");

    training.go_on().await?;
    let after = jobs::incarnation(&stage.client, JOB).await?;
    ensure!(before == after, "the service incarnation changed from {before} to {after}");
    let found = kv.get("witness", Consistency::Linearizable).await?.context("an acknowledged key is gone")?;
    ensure!(found.value == "of the outage" && found.version == written.version, "the key is now {found:?}");
    Ok(format!("{} calls were repeated", training.finish().await?))
}

/// (e) Every node is told to stop and is started again, one after the other, while polls and gets are held
/// on it: no call may fail at all.
pub(super) async fn restarted_in_turn(python: &Path, folder: &Path) -> Result<String> {
    let mut stage = Stage::set(folder, Poll::Hold).await?;
    let nodes: Vec<u64> = stage.cluster.ids().collect();
    let manners = Manners { held_gets: u64::try_from(nodes.len())?, ..Manners::PLAIN };
    let mut training = Training::start(python, folder, &stage.addresses, manners)?;
    training.reach(FAULT_AT).await?;
    let mut longest = Duration::ZERO;
    for (place, node) in (0..).zip(nodes) {
        training.wait_for_get("holding", place).await?;
        let begin = Instant::now();
        let status = stage.cluster.terminate(node).await?;
        ensure!(status.success(), "node {node} ended with {status}");
        longest = longest.max(begin.elapsed());
        training.go_on().await.with_context(|| format!("node {node} stopped"))?;
        let key = format!("held/{place}");
        stage.client.kv(JOB).put(&key, "set".into(), Condition::CreateOnly).await?;
        training.wait_for_get("held", place).await.with_context(|| format!("node {node} stopped"))?;
        stage.cluster.restart(node)?;
        stage.cluster.wait_until_ready().await?;
        training.go_on().await.with_context(|| format!("node {node} back"))?;
    }
    let allowed = scaled(STOP_LIMIT);
    ensure!(longest < allowed, "a node took {longest:?} to stop, longer than {allowed:?}");
    // A call that failed would have ended its process: nothing is repeated here.
    let repeats = training.finish().await?;
    ensure!(repeats == 0, "{repeats} calls were cut");
    Ok(format!("no call failed; the slowest node took {} ms to stop", longest.as_millis()))
}
