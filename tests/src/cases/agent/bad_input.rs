//! What is wrong, told to whom it helps: agents that contradict the job or each other, and clients that do.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tripod_processes::cluster::{Agent, Cluster, ReservedPorts};
use tripod_tests::python::{Ending, Script};
use tripod_tests::wait;

use crate::cases::nodes_in;

const TASKS: &str = "2";
/// Until an agent has asked the cluster.
const SETTLE_LIMIT: Duration = Duration::from_secs(20);
/// A client that is refused, the start of the interpreter included.
const CLIENT_LIMIT: Duration = Duration::from_secs(90);

/// Every mistake, one after the other.
pub(super) async fn run(python: &Path, folder: &Path) -> Result<String> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let cluster = Cluster::start(nodes_in(folder)?).await?;
    let sockets = tempfile::tempdir().context("a folder for sockets")?;
    let place = |name: &str| format!("unix:{}", sockets.path().join(name).display());
    let nodes = cluster.endpoints().join(",");
    let of_job = |job: &str, tasks: Option<&str>| -> Vec<String> {
        let flags = ["--cluster", &nodes, "--job", job].map(str::to_owned).into_iter();
        flags.chain(tasks.iter().flat_map(|tasks| ["--tasks".to_owned(), (*tasks).to_owned()])).collect()
    };

    let first =
        Agent::start(&place("first"), of_job("train", Some(TASKS)), &folder.join("first.log")).await?;
    settled(&first, "job settled").await?;
    twice_at_one_place(first.place(), of_job("train", Some(TASKS)), folder).await?;
    let ports = ReservedPorts::reserve(1)?;
    let second = format!("127.0.0.1:{}", ports.first());
    let on_port = Agent::start(&second, of_job("train", Some(TASKS)), &folder.join("second.log")).await?;
    twice_at_one_place(on_port.place(), of_job("train", Some(TASKS)), folder).await?;
    too_many_tasks(python, folder, first.place()).await.context("a task too many")?;

    another_size(&place("larger"), &of_job("train", Some("9")), folder).await?;

    let lost = Agent::start(&place("lost"), of_job("nowhere", None), &folder.join("lost.log")).await?;
    unknown_job(python, folder, lost.place()).await.context("an unknown job")?;
    Ok("five mistakes were named".to_owned())
}

/// A second agent where one listens, which must know that.
async fn twice_at_one_place(place: &str, flags: Vec<String>, folder: &Path) -> Result<()> {
    let said = Agent::refused(place, &flags, &folder.join("twice.log")).await?;
    let named = said.contains("another process") && said.contains(place);
    ensure!(named, "an agent twice at {place} said: {said}");
    Ok(())
}

/// An agent that names another number of tasks than the job has, which must be told how to look and what to do.
async fn another_size(place: &str, flags: &[String], folder: &Path) -> Result<()> {
    let said = Agent::refused(place, flags, &folder.join("larger.log")).await?;
    let named = said.contains("job `train` has 2 tasks, not 9") && said.contains("`tripod job delete train`");
    ensure!(named, "an agent of a larger job said: {said}");
    Ok(())
}

/// Waits until the agent's log says so.
async fn settled(agent: &Agent, text: &str) -> Result<()> {
    let what = format!("`{text}` in the log of the agent at {}", agent.place());
    wait::until(&what, SETTLE_LIMIT, || Ok(agent.output().contains(text).then_some(()))).await
}

/// A client whose number the job does not have.
async fn too_many_tasks(python: &Path, folder: &Path, address: &str) -> Result<()> {
    let said = refused(python, folder, address, "7", "task-too-many").await?;
    ensure!(said.contains("INVALID_ARGUMENT"), "the client said:\n{said}");
    Ok(())
}

/// A client of an agent whose job does not exist. It goes on asking for its whole time to start, because
/// the job may come.
async fn unknown_job(python: &Path, folder: &Path, address: &str) -> Result<()> {
    let said = refused(python, folder, address, "0", "unknown-job").await?;
    let told = "there is no job `nowhere`; create it with `tripod job create nowhere --tasks N`";
    ensure!(said.contains(told), "the client said:\n{said}");
    Ok(())
}

/// Everything that a client said which must not be connected.
async fn refused(python: &Path, folder: &Path, address: &str, task: &str, name: &str) -> Result<String> {
    let arguments = ["connect_only", "--address", address, "-n", "2", "--id", task, "--init-timeout", "5"];
    let mut client = Script::start(python, "worker.py", &arguments, &[], folder, name)?;
    let ending = client.finish(CLIENT_LIMIT).await?;
    ensure!(ending != Ending::Exit(0), "the client was connected:\n{}", client.output());
    Ok(client.output())
}
