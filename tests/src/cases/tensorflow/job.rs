//! Jobs whose tasks are TensorFlow's, made by the command line.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tripod_chaos::cluster::{ReservedPorts, find_tripod};

/// The job commands of a cluster's command line.
pub(super) fn command(endpoints: &[String]) -> Result<String> {
    let binary = find_tripod()?;
    let binary = binary.to_str().with_context(|| format!("{} is no text", binary.display()))?;
    Ok(format!("{binary} --endpoints {} job", endpoints.join(",")))
}

/// Creates a job of groups with one task each, which listen at the ports; its address at each node, by id.
pub(super) fn create(
    endpoints: &[String],
    name: &str,
    heartbeat: Duration,
    groups: &[&str],
    ports: &ReservedPorts,
) -> Result<Vec<String>> {
    let members: Vec<String> = groups.iter().map(|group| format!("{group}:1")).collect();
    let mut command = Command::new(find_tripod()?);
    command.args(["--endpoints", &endpoints.join(","), "job", "create", name, "-o", "json"]);
    command.args(["--members", &members.join(",")]);
    command.args(["--heartbeat-timeout", &heartbeat.as_secs().to_string()]);
    for (group, port) in groups.iter().zip(ports.range()) {
        command.args(["--member", &format!("{group}:0=127.0.0.1:{port}")]);
    }
    let output = command.output().context("cannot start tripod")?;
    let (said, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "job create ended with {}: {complaint}", output.status);
    let job: Value = serde_json::from_str(&said).with_context(|| format!("job create said: {said}"))?;
    let addresses = job["addresses"].as_array().context("the job has no addresses")?;
    Ok(addresses.iter().filter_map(|address| Some(address.as_str()?.to_owned())).collect())
}
