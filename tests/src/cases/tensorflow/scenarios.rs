//! Every scenario of two workers, step by step compared with TensorFlow's own service.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tripod_chaos::cluster::{Cluster, ClusterOptions};
use tripod_tests::python::{Ending, Script, scripts};

use super::job;

/// In the order in which they are played.
const SCENARIOS: [&str; 9] =
    ["kv", "barrier", "states", "report", "killed", "collective", "preempt", "shutdown", "idle"];
/// One scenario with the start of two interpreters, which takes seconds.
const SCENARIO_LIMIT: Duration = Duration::from_secs(160);
/// Until both workers are connected.
const CONNECT_LIMIT: Duration = Duration::from_secs(120);
const COMPARE_LIMIT: Duration = Duration::from_secs(30);

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
    let mut play = start(python, folder, endpoints, &SCENARIOS.join(","), 1)?;
    play.succeed(SCENARIO_LIMIT * u32::try_from(SCENARIOS.len())?).await?;
    compare(python, release, folder).await
}

/// In each scenario the leader is killed as soon as the workers are connected, to another node.
pub(super) async fn leader_killed(python: &Path, release: &str, folder: &Path) -> Result<String> {
    let mut cluster = Cluster::start(ClusterOptions::tripod()?).await?;
    for scenario in SCENARIOS {
        let leader = cluster.wait_for_leader().await?;
        let attached = cluster.ids().find(|node| *node != leader).context("a cluster of one node")?;
        let folder = folder.join(scenario);
        let mut play = start(python, &folder, &cluster.endpoints(), scenario, attached)?;
        play.wait_for_step(CONNECT_LIMIT, |step| step["step"] == "under way").await?;
        let still = cluster.wait_for_leader().await?;
        ensure!(still == leader, "leadership went from node {leader} to {still} before the fault");
        cluster.kill(leader)?;
        play.succeed(SCENARIO_LIMIT).await?;
        compare(python, release, &folder).await.with_context(|| format!("scenario {scenario}"))?;
        cluster.restart(leader)?;
        cluster.wait_until_ready().await?;
    }
    Ok(format!("{} scenarios, the leader killed in each", SCENARIOS.len()))
}

/// Starts to play `names` with both workers at one node.
fn start(python: &Path, folder: &Path, endpoints: &[String], names: &str, node: u64) -> Result<Script> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let (ours, logs) = (folder.join("outcome.json"), folder.join("workers"));
    let (jobs, node) = (job::command(endpoints)?, node.to_string());
    let arguments = [
        "--out",
        text(&ours)?,
        "--logs",
        text(&logs)?,
        "--job-cmd",
        &jobs,
        "--node",
        &node,
        "--scenarios",
        names,
    ];
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
