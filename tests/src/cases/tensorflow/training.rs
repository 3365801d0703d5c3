//! A training with `MultiWorkerMirroredStrategy` that knows the cluster by `TF_CONFIG` alone.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};
use tripod_chaos::cluster::connections::connections_to;
use tripod_chaos::cluster::{Cluster, ClusterOptions, ReservedPorts};
use tripod_tests::jobs::port_of;
use tripod_tests::python::Script;

use super::job;

/// The job's groups, with one process each.
const GROUPS: [&str; 2] = ["chief", "worker"];
/// What the strategy's clients assume.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// The step at which the leader is killed: the program is well under way.
const FAULT_AT: u64 = 5;
/// Interpreter start, registration and compilation of two processes on two cores.
const FIRST_STEPS_LIMIT: Duration = Duration::from_secs(150);
/// Some steps with an election between them.
const STEPS_LIMIT: Duration = Duration::from_secs(45);
const END_LIMIT: Duration = Duration::from_secs(60);

/// The leader is killed while both workers are attached to another node, and comes back.
pub(super) async fn leader_killed(python: &Path, folder: &Path) -> Result<String> {
    let mut cluster = Cluster::start(ClusterOptions::tripod()?).await?;
    let ports = ReservedPorts::reserve(u16::try_from(GROUPS.len())?)?;
    let addresses = job::create(&cluster.endpoints(), "train", HEARTBEAT, &GROUPS, &ports)?;
    let leader = cluster.wait_for_leader().await?;
    let nodes = cluster.ids().zip(&addresses);
    let (_, attached) = nodes.into_iter().find(|(node, _)| *node != leader).context("no other node")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let until = folder.join("finish");
    if until.exists() {
        fs::remove_file(&until).with_context(|| format!("cannot remove {}", until.display()))?;
    }
    let mut workers = Vec::new();
    for group in GROUPS {
        workers.push(start(python, folder, &until, attached, &ports, group)?);
    }
    reach(&mut workers, FAULT_AT, FIRST_STEPS_LIMIT).await?;
    for worker in &workers {
        let count = connections_to(worker.pid(), port_of(attached)?)?;
        ensure!(count > 0, "a worker has no connection to its coordinator");
    }
    let still = cluster.wait_for_leader().await?;
    ensure!(still == leader, "leadership went from node {leader} to {still} before the fault");
    cluster.kill(leader)?;
    cluster.wait_for_leader().await?;
    go_on(&mut workers).await?;
    cluster.restart(leader)?;
    cluster.wait_until_ready().await?;
    go_on(&mut workers).await?;
    fs::write(&until, "").with_context(|| format!("cannot write {}", until.display()))?;
    for worker in &mut workers {
        worker.succeed(END_LIMIT).await?;
    }
    let steps = last_number(&workers[0]).context("no step was trained")?;
    Ok(format!("{} steps were right", steps + 1))
}

/// A worker as any program of this strategy is started. A job named `ps` is where the strategy looks for
/// the coordination service.
fn start(
    python: &Path,
    folder: &Path,
    until: &Path,
    coordinator: &str,
    ports: &ReservedPorts,
    group: &str,
) -> Result<Script> {
    let listeners = GROUPS.iter().zip(ports.range());
    let mut tasks: Map<String, Value> =
        listeners.map(|(group, port)| ((*group).to_owned(), json!([format!("127.0.0.1:{port}")]))).collect();
    tasks.insert("ps".to_owned(), json!([coordinator]));
    let config = json!({"cluster": tasks, "task": {"type": group, "index": 0}}).to_string();
    let until = until.to_str().context("the folder is no text")?;
    let variables = [("TF_CONFIG", config.as_str())];
    Script::start(python, "tensorflow/train.py", &["--until", until], &variables, folder, group)
}

/// Waits until every worker has done step `number`.
async fn reach(workers: &mut [Script], number: u64, limit: Duration) -> Result<()> {
    for worker in workers {
        worker.wait_for_step(limit, |step| step["number"].as_u64().is_some_and(|at| at >= number)).await?;
    }
    Ok(())
}

/// Waits for two more steps of every worker: one of them began after this call.
async fn go_on(workers: &mut [Script]) -> Result<()> {
    let furthest = workers.iter().filter_map(last_number).max().unwrap_or_default();
    reach(workers, furthest + 2, STEPS_LIMIT).await
}

fn last_number(worker: &Script) -> Option<u64> {
    worker.steps().iter().filter_map(|step: &Value| step["number"].as_u64()).max()
}
