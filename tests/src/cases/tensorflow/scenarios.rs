//! Every scenario of two workers, step by step compared with TensorFlow's own service.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use tripod_processes::cluster::Cluster;
use tripod_tests::python::{Ending, Script, scripts};

use super::{faults, job};
use crate::cases::{leader, nodes_in};

/// In the order in which they are played.
const SCENARIOS: [&str; 9] =
    ["kv", "barrier", "states", "report", "killed", "collective", "preempt", "shutdown", "idle"];
const WORKERS: usize = 2;
/// One scenario with the start of two interpreters, which takes seconds.
const SCENARIO_LIMIT: Duration = Duration::from_secs(310);
/// Until both workers are connected.
const CONNECT_LIMIT: Duration = Duration::from_secs(200);
const COMPARE_LIMIT: Duration = Duration::from_secs(30);

/// How the workers reach the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Both are attached to this node.
    Node(u64),
    /// Each has an agent beside it.
    Agents,
}

/// Nobody is disturbed.
pub(super) async fn undisturbed(
    python: &Path,
    release: &str,
    folder: &Path,
    endpoints: &[String],
) -> Result<String> {
    let mut tests =
        Script::start(python, "tensorflow/test_compare.py", &[""; 0], &[], folder, "compare-tests")?;
    tests.succeed(COMPARE_LIMIT).await?;
    let mut play = start(python, folder, endpoints, &SCENARIOS.join(","), Way::Node(1))?;
    play.succeed(SCENARIO_LIMIT * u32::try_from(SCENARIOS.len())?).await?;
    compare(python, release, folder).await
}

/// In each scenario the leader is killed as soon as the workers are connected, which are attached to another
/// node.
pub(super) async fn leader_killed(python: &Path, release: &str, folder: &Path) -> Result<String> {
    let mut cluster = Cluster::start(nodes_in(folder)?).await?;
    for scenario in SCENARIOS {
        let leader = cluster.wait_for_leader().await?;
        let attached = cluster.ids().find(|node| *node != leader).context("a cluster of one node")?;
        let folder = folder.join(scenario);
        let mut play = start(python, &folder, &cluster.endpoints(), scenario, Way::Node(attached))?;
        play.wait_for_step(CONNECT_LIMIT, |step| step["step"] == "under way").await?;
        let dead = leader::kill_leader_but(&mut cluster, attached).await?;
        play.succeed(SCENARIO_LIMIT).await?;
        compare(python, release, &folder).await.with_context(|| format!("scenario {scenario}"))?;
        cluster.restart(dead)?;
        cluster.wait_until_ready().await?;
    }
    Ok(format!("{} scenarios, the leader killed in each", SCENARIOS.len()))
}

/// Each worker has an agent, which prefers the leader. In each scenario the leader is killed as soon as the
/// workers are connected, and so is any other node that an agent is attached to by then.
pub(super) async fn behind_agents(python: &Path, release: &str, folder: &Path) -> Result<String> {
    let mut cluster = Cluster::start(nodes_in(folder)?).await?;
    for scenario in SCENARIOS {
        let leader = cluster.wait_for_leader().await?;
        let endpoints = job::preferring(&cluster, leader);
        let folder = folder.join(scenario);
        let mut play = start(python, &folder, &endpoints, scenario, Way::Agents)?;
        let under_way = play.wait_for_step(CONNECT_LIMIT, |step| step["step"] == "under way").await?;
        let dead = faults::kill_leader_and_attached(&mut cluster, &agents(&under_way)?).await?;
        play.succeed(SCENARIO_LIMIT).await?;
        compare(python, release, &folder).await.with_context(|| format!("scenario {scenario}"))?;
        cluster.restart(dead)?;
        cluster.wait_until_ready().await?;
    }
    Ok(format!("{} scenarios, the leader and the agents' node killed in each", SCENARIOS.len()))
}

/// The agents that a scenario has told of.
fn agents(under_way: &Value) -> Result<Vec<Vec<u32>>> {
    let told = under_way["agents"].as_array().context("the scenario told of no agents")?;
    ensure!(told.len() == WORKERS, "the scenario told of {} agents", told.len());
    let pids = told.iter().map(|pid| Ok(vec![u32::try_from(pid.as_u64().context("a process id")?)?]));
    pids.collect()
}

/// Starts to play `names`.
fn start(python: &Path, folder: &Path, endpoints: &[String], names: &str, way: Way) -> Result<Script> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let (ours, logs) = (folder.join("outcome.json"), folder.join("workers"));
    let jobs = job::command(endpoints)?;
    let (flag, how) = match way {
        Way::Node(node) => ("--node", node.to_string()),
        Way::Agents => ("--agent-cmd", job::agent_command(endpoints)?),
    };
    let mut arguments = vec!["--out", text(&ours)?, "--logs", text(&logs)?];
    arguments.extend(["--job-cmd", &jobs, flag, &how, "--scenarios", names]);
    Script::start(python, "tensorflow/run_scenarios.py", &arguments, &[], folder, "scenarios")
}

async fn compare(python: &Path, release: &str, folder: &Path) -> Result<String> {
    let golden = scripts().join(format!("tensorflow/golden/{release}.json"));
    let ours = folder.join("outcome.json");
    let arguments = [text(&golden)?, text(&ours)?];
    let mut compare = Script::start(python, "tensorflow/compare.py", &arguments, &[], folder, "compare")?;
    let ending = compare.finish(COMPARE_LIMIT).await?;
    let report = compare.output();
    if ending != Ending::Exit(0) {
        bail!("{report}");
    }
    Ok(report.lines().last().unwrap_or_default().to_owned())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is no text", path.display()))
}
