//! A training with `ParameterServerStrategy`.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tripod_processes::cluster::ReservedPorts;
use tripod_tests::python::Script;

use super::job;

/// The groups whose tasks register. The chief only asks.
const GROUPS: [&str; 2] = ["worker", "ps"];
const ROLES: [&str; 3] = ["worker", "ps", "chief"];
/// What the scripts assume.
const HEARTBEAT: Duration = Duration::from_secs(4);
/// Interpreter start of three processes on two cores, and the training itself, which is short.
const TRAINING_LIMIT: Duration = Duration::from_secs(180);
const END_LIMIT: Duration = Duration::from_secs(20);

/// The chief trains with one worker and one parameter server, and sees both in the coordinator.
pub(super) async fn run(python: &Path, release: &str, folder: &Path, endpoints: &[String]) -> Result<String> {
    let ports = ReservedPorts::reserve(u16::try_from(ROLES.len())?)?;
    let name = format!("parameter-server-{release}");
    let addresses = job::create(endpoints, &name, HEARTBEAT, &GROUPS, &ports)?;
    let coordinator = addresses.first().context("the job has no address")?;
    let numbers: Vec<String> = ports.range().map(|port| port.to_string()).collect();
    let numbers = numbers.join(",");
    let start = |role: &str| {
        let arguments = [role, "--coordinator", coordinator, "--ports", &numbers];
        Script::start(python, "tensorflow/parameter_server.py", &arguments, &[], folder, role)
    };
    let mut processes = Vec::new();
    for role in ROLES {
        processes.push(start(role)?);
    }
    let mut chief = processes.pop().context("no chief")?;
    let trained = chief.wait_for_step(TRAINING_LIMIT, |step| step["step"] == "trained").await?;
    ensure!(trained["total"] == json!(10.0), "the total is wrong: {trained}");
    ensure!(trained["states"] == json!([Value::Null, Value::Null]), "a process is in error: {trained}");
    ensure!(
        trained["device"] == "/job:ps/replica:0/task:0/device:CPU:0",
        "the variable is not where it should be: {trained}"
    );
    chief.succeed(END_LIMIT).await?;
    Ok(format!("the total is {}", trained["total"]))
}
