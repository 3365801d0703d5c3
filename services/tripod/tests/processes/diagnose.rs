//! What `tripod diagnose` says of gangs of simulated clients on three real nodes, and of those nodes. A wait is blamed here after
//! half a second (`--after`), as nobody waits for a test.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tripod_load::task::{Task, register_all_on};
use tripod_wait::until_blocking;

use crate::schemas;
use crate::support::{Dev, reserve_ports, send, stderr};

const BARRIER_TIMEOUT: Duration = Duration::from_secs(600);
/// With what each of them is asked.
const ASK: [&str; 3] = ["--json", "--after=0.5", "--timeout=20"];

#[test]
fn who_is_missing_is_named_by_every_node_with_and_without_a_quorum() {
    let ports = reserve_ports();
    let data = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(&ports, data.path(), &[]);
    let runtime = Runtime::new().expect("threads");
    v1_v15_who_never_came_and_who_has_gone(&dev, &runtime);
    v16_of_5000_tasks_one_is_missing(&dev, &runtime);
    let _gang = v2_v3_v4_a_gang_that_hangs(&dev, &runtime);
    v11_without_a_quorum_the_memory_of_a_node_answers(&dev);
    dev.end();
}

/// The exit code and what was printed.
fn diagnose(dev: &Dev, first: u16, arguments: &[&str]) -> (Option<i32>, String) {
    let endpoints = dev.endpoints(first);
    let output = dev.run(&[&["diagnose", "--endpoints", &endpoints], arguments].concat());
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    assert_eq!(stderr(&output), "", "a finding is no failure of the command");
    (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
}

/// What is said once the first finding has that code. Each time another node is asked.
fn found(dev: &Dev, job: &str, code: &str) -> Value {
    let mut asked = 0_u16;
    until_blocking(code, || {
        asked += 1;
        let (exit, text) = diagnose(dev, 1 + asked % 3, &[&[job], &ASK[..]].concat());
        let json: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(exit, Some(i32::from(!json["verdict"].is_null())));
        (json["verdict"]["code"] == code).then_some(json)
    })
}

/// The addresses of a job that is created with so many tasks.
fn create(dev: &Dev, job: &str, tasks: usize) -> Vec<String> {
    let created = dev.json(&["job", "create", job, "--tasks", &tasks.to_string(), "--json"]);
    let addresses = created["addresses"].as_array().expect("of each node");
    addresses.iter().map(|address| address.as_str().expect("text").to_owned()).collect()
}

fn v1_v15_who_never_came_and_who_has_gone(dev: &Dev, runtime: &Runtime) {
    let addresses = create(dev, "begins", 4);
    let register = |task: i32| {
        let address = addresses[usize::try_from(task).expect("small") % addresses.len()].clone();
        runtime.spawn(async move { Task::register(&address, task).await.map(|_| ()) })
    };
    let begun: Vec<_> = (0..3).map(register).collect();
    let shown = found(dev, "begins", "T7101");
    assert_eq!((&shown["verdict"]["tasks"], &shown["verdict"]["where"]), (&json!([3]), &json!("launcher")));
    let states = dev.json(&["job", "show", "begins", "--json"]);
    let states = states["task_states"].as_array().expect("tasks").iter().map(|task| task["state"].clone());
    assert_eq!(states.collect::<Vec<_>>(), ["registering", "registering", "registering", "never-came"]);

    begun[1].abort();
    let shown = found(dev, "begins", "T7102");
    assert_eq!(shown["verdict"]["tasks"], json!([1]));
    let codes = shown["findings"].as_array().expect("a list").iter().map(|found| found["code"].clone());
    assert_eq!(codes.collect::<Vec<_>>(), ["T7102", "T7101"]);
    begun.iter().for_each(tokio::task::JoinHandle::abort);
    dev.text(&["job", "delete", "begins", "--yes"]);
}

fn v16_of_5000_tasks_one_is_missing(dev: &Dev, runtime: &Runtime) {
    let addresses = create(dev, "large", 5_000);
    // Those behind the first 4,999 are one too few.
    let begun = runtime.spawn(async move { register_all_on(6, &addresses, 4_999).await.map(|_| ()) });
    let wait = ["diagnose", "large", "--json", "--after=0.5", "--timeout=20"];
    let shown = until_blocking("all others wait", || {
        let output = dev.run(&wait);
        let json: Value = serde_json::from_slice(&output.stdout).ok()?;
        (json["verdict"]["tasks"] == json!([4_999])).then_some(json)
    });
    assert!(shown.to_string().len() <= 200_000);
    let (exit, text) = diagnose(dev, 2, &["large", "--after=0.5", "--timeout=20"]);
    assert_eq!(exit, Some(1));
    assert!(text.lines().count() <= 24 && text.contains("0-4998 at the registration"), "{text}");
    begun.abort();
    dev.text(&["job", "delete", "large", "--yes"]);
}

/// Task 2 of four hangs somewhere; gives what keeps them waiting.
fn v2_v3_v4_a_gang_that_hangs(dev: &Dev, runtime: &Runtime) -> Vec<tokio::task::JoinHandle<bool>> {
    let addresses = create(dev, "train", 4);
    let gang = runtime.block_on(tripod_load::task::register_all(&addresses, 4)).expect("all register");
    let barrier = |task: usize, name: &'static str| {
        let mut task = gang[task].clone();
        runtime.spawn(async move { task.barrier(name, 0, BARRIER_TIMEOUT).await.is_ok() })
    };
    let before: Vec<_> = (0..4).map(|task| barrier(task, "sync_6")).collect();
    assert!(before.into_iter().all(|one| runtime.block_on(one).expect("no panic")));
    let (exit, text) = diagnose(dev, 1, &["train", "--timeout=20"]);
    assert_eq!(exit, Some(0), "{text}");
    assert!(text.starts_with("nobody waits at the coordinator"), "{text}");

    let mut waiting: Vec<_> = [0, 1, 3].map(|task| barrier(task, "sync_7")).into();
    let busy = found(dev, "train", "T7105");
    schemas::check("diagnose", &busy);
    let missing = &busy["missing"][0];
    assert_eq!((&busy["verdict"]["sure"], &missing["task"]), (&json!("certain"), &json!(2)));
    assert_eq!((&missing["call"], &missing["last_call"]["subject"]), (&Value::Null, &json!("sync_6")));

    let mut reader = gang[2].clone();
    let reads = runtime.spawn(async move { reader.key("ckpt/shard/2").await.is_ok() });
    let at_key = found(dev, "train", "T7104");
    let call = &at_key["missing"][0]["call"];
    assert_eq!((&call["kind"], &call["subject"]), (&json!("key"), &json!("ckpt/shard/2")));
    reads.abort();

    waiting.push(barrier(2, "sync_8"));
    let elsewhere = found(dev, "train", "T7103");
    assert_eq!(elsewhere["verdict"]["parties"], json!({ "sync_7": [0, 1, 3], "sync_8": [2] }));
    let text = dev.text(&["status"]);
    assert!(text.contains("\ntolerance 1 node   change of members: safe\n"), "{text}");
    waiting
}

/// One node is killed and one stands still.
fn v11_without_a_quorum_the_memory_of_a_node_answers(dev: &Dev) {
    dev.kill(1);
    let stopped = dev.nodes[1];
    send(stopped, Signal::SIGSTOP);
    let asked = || diagnose(dev, 3, &[&["train"], &ASK[..]].concat());
    let shown = until_blocking("the answer of node 3", || {
        let (exit, text) = asked();
        assert_eq!(exit, Some(1), "{text}");
        let json: Value = serde_json::from_str(&text).expect("JSON");
        (json["verdict"]["code"] == "T7201").then_some(json)
    });
    assert_eq!((&shown["told_by"], &shown["cluster"]["silent"]), (&json!(3), &json!([1, 2])));
    assert_eq!(shown["cluster"]["change_safe"], json!(false));
    // A disk may be slow just then; programs are blamed for nothing.
    let findings = shown["findings"].as_array().expect("a list");
    let is_coordinator =
        |finding: &Value| finding["code"].as_str().is_some_and(|code| code.starts_with("T72"));
    assert!(findings.iter().all(is_coordinator), "{findings:?}");
    assert!(shown["from_memory"]["index"].as_u64().expect("an index") > 0);
    let (_, text) = diagnose(dev, 3, &["train", "--after=0.5", "--timeout=20"]);
    for line in [
        "T7201 no-quorum: 1 of 3 voters answers, 2 must; ",
        "  node 1   refuses the connection: the process is down\n",
        "  node 2   does not answer in time: frozen, overloaded or cut off\n",
        "next: start node 1\n",
        "told from the memory of node 3: as of ",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    send(stopped, Signal::SIGCONT);
    let again = until_blocking("a leader", || {
        let (_, text) = asked();
        let json: Value = serde_json::from_str(&text).expect("JSON");
        json["from_memory"].is_null().then_some(json)
    });
    assert_ne!(again["verdict"]["code"], "T7201", "two of three serve");
}
