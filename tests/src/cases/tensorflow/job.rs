//! Jobs whose tasks are TensorFlow's, made by the command line.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tripod_processes::cluster::{Cluster, ReservedPorts, find_tripod};

/// The job commands of a cluster's command line.
pub(super) fn command(endpoints: &[String]) -> Result<String> {
    Ok(format!("{} --endpoints {} job", binary()?, endpoints.join(",")))
}

/// The command line of an agent, without its job and its place.
pub(super) fn agent_command(endpoints: &[String]) -> Result<String> {
    Ok(format!("{} agent --cluster {}", binary()?, endpoints.join(",")))
}

fn binary() -> Result<String> {
    let binary = find_tripod()?;
    binary.to_str().map(str::to_owned).with_context(|| format!("{} is no text", binary.display()))
}

/// The client addresses of a cluster in the order in which an agent shall prefer them: this node's first.
pub(super) fn preferring(cluster: &Cluster, first: u64) -> Vec<String> {
    let others = cluster.ids().filter(|node| *node != first);
    std::iter::once(first).chain(others).map(|node| cluster.endpoint(node)).collect()
}

/// What tells where the members of a job listen: the first task of each group at one of the ports.
pub(super) fn member_flags(groups: &[&str], ports: &ReservedPorts) -> Vec<String> {
    let members = groups.iter().zip(ports.range());
    members.flat_map(|(group, port)| ["--member".to_owned(), format!("{group}:0=127.0.0.1:{port}")]).collect()
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
    command.args(member_flags(groups, ports));
    let output = command.output().context("cannot start tripod")?;
    let (said, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "job create ended with {}: {complaint}", output.status);
    let job: Value = serde_json::from_str(&said).with_context(|| format!("job create said: {said}"))?;
    let addresses = job["addresses"].as_array().context("the job has no addresses")?;
    Ok(addresses.iter().filter_map(|address| Some(address.as_str()?.to_owned())).collect())
}
