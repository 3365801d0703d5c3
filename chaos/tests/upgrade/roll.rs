//! Up to the next feature level and back to the one before, one node at a time, under writes.

use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use tonic::Code;
use tripod_client::{Client, Config, Error, Scheduler};
use tripod_processes::cluster::{Cluster, complaint, find_tripod};
use tripod_proto::ray::{ExportReusableVariableRequest, Function, ReusableVar};
use tripod_state::level::NEWEST;
use tripod_wait::{deadline, until_async};

use crate::assert_equal_digests;
use crate::builds::{Build, Builds};
use crate::counting::Counting;

const COUNTERS: usize = 4;
/// Increments between two steps.
const BETWEEN: u64 = 50;

/// Runs a command of this build against the nodes at these addresses.
async fn run(endpoints: &[String], arguments: &[&str]) -> Output {
    let mut command = Command::new(find_tripod().unwrap());
    let patience = deadline().as_secs().to_string();
    command.args(arguments).args(["--json", "--timeout", &patience, "--endpoints", &endpoints.join(",")]);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn told(output: &Output) -> String {
    complaint(&output.stderr)
}

/// The same for a command that must succeed.
async fn done(endpoints: &[String], arguments: &[&str]) -> Value {
    let output = run(endpoints, arguments).await;
    assert!(output.status.success(), "{arguments:?}: {}", told(&output));
    serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
}

/// The same for one that must be refused with this code.
async fn refused(endpoints: &[String], arguments: &[&str], code: &str) {
    let output = run(endpoints, arguments).await;
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", told(&output));
    assert!(told(&output).contains(code), "{arguments:?}: {}", told(&output));
}

/// The same until the refusal gives that reason: a new leader asks the members first.
async fn refused_because(endpoints: &[String], arguments: &[&str], reason: &str) {
    until_async(format!("`{reason}`"), || async {
        let output = run(endpoints, arguments).await;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", told(&output));
        told(&output).contains(reason).then_some(())
    })
    .await;
}

async fn wait_for_level(endpoints: &[String], wanted: u64) {
    until_async(format!("level {wanted}"), || async {
        (done(endpoints, &["level", "show"]).await["level"] == wanted).then_some(())
    })
    .await;
}

/// On a busy machine an heir may not take over in time, and everything stays as it was.
async fn transfer_to(endpoints: &[String], node: u64) {
    let node = node.to_string();
    until_async(format!("a transfer to node {node}"), || async {
        run(endpoints, &["leader", "transfer", "--to", &node]).await.status.success().then_some(())
    })
    .await;
}

/// Ends a node as an operator does, and starts it as that build.
async fn restart_as(cluster: &mut Cluster, builds: &Builds, node: u64, build: Build) {
    builds.set(node, build);
    let ended = cluster.terminate(node).await.unwrap();
    assert!(ended.success(), "node {node} ended with {ended}");
    cluster.restart(node).unwrap();
    cluster.wait_until_ready().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_go_up_a_level_and_back_under_writes() {
    let builds = Builds::all(Build::Before);
    let mut cluster = Cluster::start(builds.options()).await.unwrap();
    let all = cluster.endpoints();
    let counting = Counting::start(&all, COUNTERS);
    counting.go_on(2 * BETWEEN).await;

    let note = ["job", "note", "default", "team blue"];
    for node in 1..=3 {
        restart_as(&mut cluster, &builds, node, Build::This).await;
        counting.go_on(BETWEEN).await;
        if node < 3 {
            let upgraded = [cluster.endpoint(node)];
            // Whoever leads.
            refused(&upgraded, &note, "T4401 level-low").await;
            // A leader that could raise the level, and asks whether it may.
            transfer_to(&all, node).await;
            refused_because(&upgraded, &note, "node 3 supports 1 only").await;
            counting.go_on(BETWEEN).await;
        }
    }
    wait_for_level(&all, u64::from(NEWEST.0)).await;
    done(&all, &note).await;
    assert_eq!(done(&all, &["job", "show", "default"]).await["note"], "team blue");
    counting.go_on(BETWEEN).await;
    nobody_diverged(&cluster);

    refused(&all, &["level", "pin", "1"], "T4405 level-held").await;
    done(&all, &["job", "note", "default", ""]).await;
    let pinned = done(&all, &["level", "pin", "1"]).await;
    let members = pinned["members"].as_array().unwrap();
    assert!(pinned["level"] == 1 && members.iter().all(|member| member["back_to"] == 1), "{pinned}");
    refused_because(&all, &note, "pinned at 1").await;
    for node in 1..=3 {
        restart_as(&mut cluster, &builds, node, Build::Before).await;
        counting.go_on(BETWEEN).await;
    }
    counting.stop_and_check(&all).await;
    assert_equal_digests(&all).await;
}

/// A job's scheduler, and the job.
const WORK: &str = "work";

/// Registers an object store, which waits for the level for so long; why that is refused, if so.
async fn register(endpoints: &[String], patience: Duration) -> Result<(), Error> {
    let config = Config { timeout: deadline(), ..Config::new(endpoints.to_vec()) };
    let scheduler = Scheduler::new(Client::new(&config).unwrap(), WORK, rand::random(), patience);
    scheduler.register_store("127.0.0.1:7750").await.map(|_| ())
}

async fn is_too_early(endpoints: &[String]) {
    match register(endpoints, Duration::ZERO).await {
        Err(Error::Refused { code, reason, message, .. }) => {
            assert_eq!((code, &*reason), (Code::FailedPrecondition, "level"), "{message}");
            assert!(message.contains("level 3") && message.contains("`tripod level show`"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_level_2_gets_schedulers_with_its_last_node_and_goes_back_when_none_is_left() {
    let builds = Builds::all(Build::UpTo(2));
    let mut cluster = Cluster::start(builds.options()).await.unwrap();
    let all = cluster.endpoints();
    wait_for_level(&all, 2).await;
    done(&all, &["job", "create", WORK, "--tasks", "1"]).await;
    done(&all, &["job", "note", WORK, "team blue"]).await;
    let counting = Counting::start(&all, COUNTERS);
    for node in 1..=3 {
        is_too_early(&all).await;
        restart_as(&mut cluster, &builds, node, Build::This).await;
        counting.go_on(BETWEEN).await;
    }
    // It waits for the level, which rises by itself.
    register(&all, deadline()).await.unwrap();
    wait_for_level(&all, u64::from(NEWEST.0)).await;
    counting.go_on(BETWEEN).await;
    nobody_diverged(&cluster);

    refused(&all, &["level", "pin", "2"], "T4405 level-held").await;
    done(&all, &["job", "delete", WORK, "--yes"]).await;
    let pinned = done(&all, &["level", "pin", "2"]).await;
    let members = pinned["members"].as_array().unwrap();
    assert!(pinned["level"] == 2 && members.iter().all(|member| member["back_to"] == 2), "{pinned}");
    for node in 1..=3 {
        restart_as(&mut cluster, &builds, node, Build::UpTo(2)).await;
        counting.go_on(BETWEEN).await;
    }
    done(&all, &["job", "create", WORK, "--tasks", "1"]).await;
    is_too_early(&all).await;
    done(&all, &["job", "note", WORK, "team red"]).await;
    counting.stop_and_check(&all).await;
    assert_equal_digests(&all).await;
}

/// Exports something to the workers of the job, of one name.
async fn export(scheduler: &Scheduler, body: u64) {
    let initializer = Some(Function { implementation: body.to_le_bytes().to_vec().into() });
    let variable = ReusableVar { name: b"v".as_slice().into(), initializer, reinitializer: None };
    let message = ExportReusableVariableRequest { reusable_variable: Some(variable) };
    scheduler.export_variable(message).await.unwrap();
}

async fn exports(endpoints: &[String]) -> u64 {
    let shown = done(endpoints, &["ray", "status", "--job", WORK]).await;
    shown["exports"].as_u64().unwrap_or_else(|| panic!("{shown}"))
}

/// The level changes what commands mean, under the scheduler that is there, and back again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduler_of_level_3_goes_on_by_the_rules_of_level_4_with_the_last_node_and_back() {
    let builds = Builds::all(Build::UpTo(3));
    let mut cluster = Cluster::start(builds.options()).await.unwrap();
    let all = cluster.endpoints();
    wait_for_level(&all, 3).await;
    done(&all, &["job", "create", WORK, "--tasks", "1"]).await;
    let config = Config { timeout: deadline(), ..Config::new(all.clone()) };
    let scheduler = Scheduler::new(Client::new(&config).unwrap(), WORK, rand::random(), deadline());
    scheduler.register_store("127.0.0.1:7750").await.unwrap();
    let counting = Counting::start(&all, COUNTERS);
    let mut bodies = 0..;
    let mut export_some = async || {
        for body in bodies.by_ref().take(5) {
            export(&scheduler, body).await;
        }
    };
    export_some().await;
    for node in 1..=3 {
        restart_as(&mut cluster, &builds, node, Build::This).await;
        counting.go_on(BETWEEN).await;
        if node < 3 {
            export_some().await;
        }
    }
    wait_for_level(&all, u64::from(NEWEST.0)).await;
    export_some().await;
    assert_eq!(exports(&all).await, 1, "of fifteen the last");
    nobody_diverged(&cluster);

    let pinned = done(&all, &["level", "pin", "3"]).await;
    let members = pinned["members"].as_array().unwrap();
    assert!(pinned["level"] == 3 && members.iter().all(|member| member["back_to"] == 3), "{pinned}");
    for node in 1..=3 {
        restart_as(&mut cluster, &builds, node, Build::UpTo(3)).await;
        counting.go_on(BETWEEN).await;
    }
    export_some().await;
    assert_eq!(exports(&all).await, 6);
    counting.stop_and_check(&all).await;
    assert_equal_digests(&all).await;
    nobody_diverged(&cluster);
}

/// While clients write no two nodes are at one index for long, so what is compared is what the nodes compare.
fn nobody_diverged(cluster: &Cluster) {
    for node in cluster.ids() {
        let log = std::fs::read_to_string(cluster.log(node)).unwrap();
        assert!(!log.contains("T3112 state-diverged"), "node {node}: {log}");
    }
}
