//! What a real Prometheus says to rules, dashboards and nodes. `promtool check metrics` is not asked: it knows the older text
//! format only.

use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Runtime;
use tripod_load::task::{Task, register_all};
use tripod_wait::until_blocking;

use super::collector::{Collector, program};
use super::dashboards::dashboards;
use super::file;
use super::promql;
use super::rules::{ALERTS, RECORDINGS, alerts, file_of, recordings};
use super::scenarios::scenarios;
use crate::support::{Dev, reserve_ports};

const NEEDS: &str = "needs Prometheus: cargo xtask test --only monitoring";
/// Of nodes of `dev`, behind the first client port.
const HTTP_OFFSET: u16 = 200;
/// Where nobody of `dev` listens.
const COLLECTOR_OFFSET: u16 = 590;
/// Over which rates are taken: some pages of this collector.
const RATES_OVER: &str = "10s";
const BARRIER_TIMEOUT: Duration = Duration::from_secs(60);
/// Of one gang, whose heartbeats and barriers are counted.
const TASKS: usize = 2;

fn promtool(arguments: &[String]) {
    let output = program("promtool").args(arguments).output().expect("it runs");
    let said =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{NEEDS}: promtool {}\n{said}", arguments[..2].join(" "));
}

#[test]
#[ignore = "needs Prometheus: cargo xtask test --only monitoring"]
fn rules_are_written_as_prometheus_reads_them() {
    let files = [ALERTS, RECORDINGS].map(|path| file(path).display().to_string());
    promtool(&[&["check".to_owned(), "rules".to_owned()][..], &files].concat());
}

#[test]
#[ignore = "needs Prometheus: cargo xtask test --only monitoring"]
fn each_alert_fires_with_what_it_is_for_and_not_with_what_is_nearly_so() {
    let folder = tempfile::tempdir().expect("a directory");
    let (alerts, recordings) = (alerts(), recordings());
    let mut arguments = vec!["test".to_owned(), "rules".to_owned()];
    for scenario in scenarios() {
        let alert = alerts.iter().find(|alert| alert.name == scenario.alert).expect("it is one");
        // Alone with what it asks for, so that 68 alerts are not evaluated for each of them.
        let recorded = promql::recorded(&alert.expr);
        let needed = recordings.iter().filter(|rule| recorded.contains(&rule.name));
        let write = |kind: &str, content: &Value| {
            let path = folder.path().join(format!("{}.{kind}.yml", alert.name));
            std::fs::write(&path, content.to_string()).expect("written");
            path.display().to_string()
        };
        let rules = write("rules", &file_of(needed.chain([alert])));
        arguments.push(write("test", &scenario.test(alert, &rules)));
    }
    promtool(&arguments);
}

/// Three nodes with a gang that beats, meets and writes, and a backup.
struct Watched {
    dev: Dev,
    collector: Collector,
    runtime: Runtime,
}

impl Watched {
    fn gang(&self) -> Vec<Task> {
        // These have no agent that would find another node.
        let leader = u16::try_from(self.dev.current_leader()).expect("a small id");
        let address = format!("127.0.0.1:{}", self.dev.port + leader - 1);
        let tasks = self.runtime.block_on(register_all(&[address], TASKS)).expect("all register");
        for task in &tasks {
            let mut beating = task.clone();
            self.runtime.spawn(async move {
                while beating.heartbeat().await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(250)).await;
                }
            });
        }
        tasks
    }

    /// All tasks meet at a barrier.
    fn meet(&self, tasks: &[Task], name: &str) {
        let arrive = |task: &Task| {
            let (mut task, name) = (task.clone(), name.to_owned());
            async move { task.barrier(&name, 0, BARRIER_TIMEOUT).await }
        };
        let met = self.runtime.block_on(async {
            let waits: Vec<_> = tasks.iter().map(|task| tokio::spawn(arrive(task))).collect();
            let mut met = Vec::new();
            for wait in waits {
                met.push(wait.await.expect("it ends"));
            }
            met
        });
        assert!(met.iter().all(Result::is_ok), "{met:?}");
    }

    fn firing(&self) -> Vec<String> {
        let firing = self.collector.ask("ALERTS{alertstate=\"firing\"}").expect("it is asked rightly");
        firing.iter().map(|alert| alert["metric"]["alertname"].as_str().expect("a name").to_owned()).collect()
    }
}

#[test]
#[ignore = "needs Prometheus: cargo xtask test --only monitoring"]
fn nodes_are_collected_dashboards_are_filled_and_a_dead_node_is_told() {
    let (ports, data) = (reserve_ports(), tempfile::tempdir().expect("a directory"));
    let dev = Dev::start(&ports, &data.path().join("nodes"), &["--tasks=2"]);
    let http: Vec<u16> = (0..3).map(|place| dev.port + HTTP_OFFSET + place).collect();
    let collector = Collector::start(data.path(), dev.port + COLLECTOR_OFFSET, &http);
    let watched = Watched { dev, collector, runtime: Runtime::new().expect("threads") };
    let tasks = watched.gang();
    watched.dev.text(&["snapshot", "save", data.path().join("backup").to_str().expect("UTF-8")]);

    // Every panel has something to show while a gang is at work, and no expression is wrong.
    let mut round = 0;
    until_blocking("a figure for every panel", || {
        round += 1;
        watched.meet(&tasks, &format!("step {round}"));
        watched.dev.text(&["kv", "put", "step", &round.to_string()]);
        let panels = dashboards().into_iter().flat_map(|dashboard| dashboard.panels);
        let empty: Vec<String> = panels
            .filter(|panel| {
                let shown = watched.collector.ask(&panel.of_all(RATES_OVER));
                shown.unwrap_or_else(|error| panic!("{}: {}: {error}", panel.title, panel.expr)).is_empty()
            })
            .map(|panel| format!("{}: {}", panel.title, panel.expr))
            .collect();
        assert!(round < 200, "{empty:#?}");
        empty.is_empty().then_some(())
    });
    assert_eq!(watched.collector.trouble(), ["", "", ""], "every page is taken");
    for rule in alerts().into_iter().chain(recordings()) {
        watched.collector.ask(&rule.expr).unwrap_or_else(|error| panic!("{}: {error}", rule.name));
    }
    assert_eq!(watched.firing(), Vec::<String>::new(), "nothing is wrong");
    let told = |expr: &str| {
        let shown = watched.collector.ask(expr).expect("it is asked rightly");
        shown.first().and_then(|sample| sample["value"][1].as_str().map(str::to_owned))
    };
    assert_eq!(told("max(tripod_failure_tolerance)").as_deref(), Some("1"));
    assert_eq!(told("count(tripod_peer_round_trip_seconds)").as_deref(), Some("2"), "both who do not lead");

    // One that does not lead dies, and those who watch are told, while the gang goes on.
    let leader = watched.dev.current_leader();
    watched.dev.kill(leader % 3 + 1);
    until_blocking("an alert", || {
        watched.firing().iter().any(|alert| alert == "TripodPeerSilent").then_some(())
    });
    assert_eq!(told("max(tripod_failure_tolerance)").as_deref(), Some("0"));
    assert_eq!(told("max(tripod_change_safe)").as_deref(), Some("0"));
    watched.meet(&tasks, "after the loss");
}
