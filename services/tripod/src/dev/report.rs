//! What `dev` prints: lines for scripts, or what a person needs next.

use serde::Serialize;

use crate::dev::plan::NodePlan;
use crate::dev::{Data, Plan};
use crate::output::{self, Format, Table};
use crate::view::job::target;

/// A line for scripts. A contract: fields may be added, never renamed or moved.
#[derive(Debug, Serialize)]
struct StartedLine<'a> {
    node: u64,
    pid: u32,
    client: &'a str,
    http: &'a str,
}

/// The line that says that the cluster may be used.
#[derive(Debug, Serialize)]
struct ReadyLine {
    ready: bool,
    leader: u64,
}

/// Nobody need read standard output: the cluster runs on when it is closed.
fn say(printed: std::io::Result<()>) {
    if let Err(error) = printed {
        tracing::debug!(%error, "standard output is closed");
    }
}

/// A node's process started.
pub(crate) fn started(format: Format, node: &NodePlan, pid: u32) {
    match format {
        Format::Json => say(output::json(&started_line(node, pid))),
        Format::Table => output::note(&format!("node {} started, process {pid}", node.id)),
    }
}

fn started_line(node: &NodePlan, pid: u32) -> StartedLine<'_> {
    StartedLine { node: node.id, pid, client: &node.client, http: &node.http }
}

/// A node's process ended without being told to.
pub(crate) fn ended(node: &NodePlan, how: &str, restart: bool) {
    let next =
        if restart { "it is started again" } else { "it stays dead; with --restart it would come back" };
    output::note(&format!("node {} ended ({how}); {next}", node.id));
}

/// The cluster may be used.
pub(crate) fn ready(format: Format, plan: &Plan, data: &Data, leader: u64, tasks: u32) {
    match format {
        Format::Json => say(output::json(&ReadyLine { ready: true, leader })),
        Format::Table => say(output::line(&welcome(plan, data, leader, tasks))),
    }
}

fn welcome(plan: &Plan, data: &Data, leader: u64, tasks: u32) -> String {
    let mut table = Table::new(&["NODE", "CLIENT", "HTTP", "JOB PORTS", ""]);
    for node in &plan.nodes {
        table.row(vec![
            node.id.to_string(),
            node.client.clone(),
            format!("http://{}/status", node.http),
            node.job_ports.to_string(),
            if node.id == leader { "leader" } else { "" }.to_owned(),
        ]);
    }
    let endpoints = plan.clients().join(",");
    let target = target(&plan.clients());
    format!(
        "\
{page}   the page: the cluster, its jobs and their tasks as they change

cluster {id} is ready; its data is in {data}

{table}

A JAX program of {tasks} process(es) needs

  export JAX_COORDINATOR_BIND_ADDRESS=127.0.0.1:0
  export GRPC_FAIL_FAST=false

and in process i

  jax.distributed.initialize(\"{target}\", {tasks}, i)

More jobs, and a look at the cluster:

  export TRIPOD_ENDPOINTS={endpoints}
  tripod job create NAME --tasks N
  tripod status

Ctrl-C ends all nodes.",
        page = plan.nodes.first().map(|node| format!("http://{}/ui/", node.http)).unwrap_or_default(),
        id = data.cluster_id(),
        data = data.root().display(),
        table = table.render(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_for_scripts_follow_the_contract() {
        let plan = Plan::new(1, 7700).expect("legal");
        let line = serde_json::to_string(&started_line(&plan.nodes[0], 42)).expect("JSON");
        assert_eq!(line, r#"{"node":1,"pid":42,"client":"127.0.0.1:7700","http":"127.0.0.1:7900"}"#);
        let line = serde_json::to_string(&ReadyLine { ready: true, leader: 1 }).expect("JSON");
        assert_eq!(line, r#"{"ready":true,"leader":1}"#);
    }

    #[test]
    fn a_jax_user_is_told_everything_that_is_needed() {
        let plan = Plan::new(3, 7700).expect("legal");
        let data = Data::open(None, &plan).expect("a directory");
        let text = welcome(&plan, &data, 2, 4);
        assert!(text.starts_with("http://127.0.0.1:7900/ui/ "), "the page comes first in\n{text}");
        for line in [
            "export JAX_COORDINATOR_BIND_ADDRESS=127.0.0.1:0",
            "export GRPC_FAIL_FAST=false",
            "jax.distributed.initialize(\"ipv4:127.0.0.1:7700,127.0.0.1:7701,127.0.0.1:7702\", 4, i)",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
