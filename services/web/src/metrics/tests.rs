//! The page is what the catalogue says, and so is docs/metrics.md.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use tripod_gateway::{ElectionCounts, FlushTimes, Measures, SnapshotCounts};
use tripod_state::command::Answer;
use tripod_state::ids::{Incarnation, LogIndex, NodeId, ServiceIncarnation, TaskId, Term};
use tripod_state::{ApplyContext, Command, Envelope, Scope, job, session, task};

use super::catalogue::{METRICS, Metric};
use super::*;

/// Name, type, unit and label.
type Facts = BTreeMap<String, [String; 3]>;

fn facts(metric: &Metric) -> (String, [String; 3]) {
    let label = metric.label.unwrap_or("");
    (metric.name.to_owned(), [metric.kind.name().into(), metric.unit().into(), label.into()])
}

fn catalogue() -> Facts {
    METRICS.iter().map(|metric| facts(metric)).collect()
}

/// The rows of the tables: name, type, unit, labels with their bound, meaning, alarm.
fn documented(text: &str) -> Facts {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let row = |line: &str| {
        let (name, rest) = line.split_once("` | ").expect("a name");
        let cells: Vec<&str> = rest.trim_end_matches(" |").split(" | ").collect();
        let [kind, unit, label, meaning, _alarm] = cells[..] else {
            panic!("{name} has {} cells", cells.len())
        };
        assert!(!meaning.is_empty(), "{name} means nothing");
        let label = label.split('`').nth(1).unwrap_or("");
        (name.to_owned(), [kind.to_owned(), unit.to_owned(), label.to_owned()])
    };
    rows.map(row).collect()
}

/// A node that leads, has three members and has counted something of everything.
async fn full_page() -> String {
    let (gateway, backend) = Gateway::in_memory();
    backend.set_measures(Measures {
        flush: FlushTimes { count: 2, p50: None, p99: Some(Duration::from_millis(2)), under_way: None },
        elections: ElectionCounts { stood: 3, leader_changes: 4 },
        heard: vec![(NodeId(2), Duration::from_millis(1500))],
        snapshots: SnapshotCounts { built: 1, ..SnapshotCounts::default() },
        ..Measures::default()
    });
    gateway.last_backup().note(SystemTime::now());
    // With the next tick of its timers.
    let is_noted = || (gateway.tasks_late().is_some() && gateway.led_for().is_some()).then_some(());
    tripod_wait::until("the leader to be noted", is_noted).await;
    page(&gateway, &SnapshotsSeen::default(), NodeFigures::default()).await
}

#[test]
fn the_document_and_the_catalogue_name_the_same_metrics() {
    let text = include_str!("../../../../docs/metrics.md");
    let (told, known) = (documented(text), catalogue());
    for (name, facts) in &known {
        assert_eq!(told.get(name), Some(facts), "{name} in docs/metrics.md");
    }
    let gone: Vec<_> = told.keys().filter(|name| !known.contains_key(*name)).collect();
    assert!(gone.is_empty(), "docs/metrics.md tells of {gone:?}, which no page has");
}

#[tokio::test]
async fn the_page_and_the_catalogue_name_the_same_metrics() {
    let page = full_page().await;
    let (mut shown, mut families) = (Facts::new(), Vec::new());
    for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (family, kind) = line.split_once(' ').expect("a type");
        // Scrapers refuse a page in which a counter without its `_total` has the name of another metric.
        assert!(!families.contains(&family), "{family} twice");
        families.push(family);
        let name = if kind == "counter" { format!("{family}_total") } else { family.to_owned() };
        shown.insert(name, [kind.into(), String::new(), String::new()]);
    }
    let known = catalogue();
    assert_eq!(shown.keys().collect::<Vec<_>>(), known.keys().collect::<Vec<_>>());
    for (name, [kind, ..]) in &shown {
        assert_eq!(*kind, known[name][0], "{name}");
    }
}

#[tokio::test]
async fn labels_are_those_of_the_catalogue_and_values_are_those_of_the_node() {
    let page = full_page().await;
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().expect("a name");
        let base = ["_bucket", "_sum", "_count"].into_iter().find_map(|end| name.strip_suffix(end));
        let metric = METRICS.iter().find(|metric| metric.name == name || Some(metric.name) == base);
        let metric = metric.unwrap_or_else(|| panic!("{line}"));
        let labels = line.split_once('{').map_or("", |(_, rest)| rest.rsplit_once('}').expect("its end").0);
        let names = labels.split("\",").filter_map(|label| Some(label.split_once('=')?.0));
        let names: Vec<&str> = names.filter(|name| *name != "le").collect();
        let known: Vec<&str> = metric.label.into_iter().flat_map(|labels| labels.split(',')).collect();
        assert_eq!(names, known, "{line}");
    }
    for line in [
        "tripod_leader 1",
        "tripod_elections_total 3",
        "tripod_leader_changes_total 4",
        "tripod_peer_silence_seconds{peer=\"2\"} 1.5",
        "tripod_flush_p99_seconds 0.002",
        "tripod_write_flush_seconds_bucket{le=\"+Inf\"} 0",
        "tripod_tasks{state=\"connected\"} 0",
        "tripod_tasks{state=\"late\"} 0",
        "tripod_tasks_given_up_total{why=\"silent\"} 0",
        "tripod_barriers_failed_total{reason=\"timed-out\"} 0",
        "tripod_failure_tolerance 0",
        "tripod_change_safe 1",
        "tripod_cluster_info{cluster=\"memory\"} 1",
        "tripod_call_stream_frames_total{direction=\"in\"} 0",
        "tripod_call_streams_ended_total{reason=\"bye\"} 0",
    ] {
        assert!(page.lines().any(|shown| shown == line), "{line} is missing in\n{page}");
    }
    assert!(page.ends_with("# EOF\n"));
}

#[tokio::test]
async fn a_session_counts_until_it_is_closed() {
    let (gateway, backend) = Gateway::in_memory();
    let shown = async || {
        let page = page(&gateway, &SnapshotsSeen::default(), NodeFigures::default()).await;
        let line = page.lines().find_map(|line| line.strip_prefix("tripod_sessions "));
        line.and_then(|value| value.parse::<u64>().ok())
    };
    let apply = |command: session::Command, index: u64| {
        let mut state = backend.state();
        let context = ApplyContext { index: LogIndex(index), term: Term(1), now_ms: state.now_ms() };
        let reply = state.apply(&context, Envelope { stamp: None, command: Command::Session(command) }).reply;
        backend.replace(state);
        reply.expect("accepted")
    };
    let before = shown().await.expect("told");
    let Answer::Session(session) = apply(session::Command::Open, 1_000) else { panic!("no session") };
    assert_eq!(shown().await, Some(before + 1));
    apply(session::Command::Close { session }, 1_001);
    assert_eq!(shown().await, Some(before));
}

#[tokio::test(start_paused = true)]
async fn a_job_waits_in_which_somebody_has_waited_for_more_than_a_minute() {
    let (gateway, _backend) = Gateway::in_memory();
    let shown = async || {
        let page = page(&gateway, &SnapshotsSeen::default(), NodeFigures::default()).await;
        page.lines().find_map(|line| line.strip_prefix("tripod_jobs_waiting ")).map(str::to_owned)
    };
    let service = ServiceIncarnation(7);
    let create = job::Command::Create { name: "a".into(), spec: job::Spec::of_tasks(2), service };
    let Ok(Answer::Job(job)) = gateway.submit(Command::Job(create)).await.expect("no outage") else {
        panic!("no job")
    };
    let register = task::Command::Register {
        scope: Scope { job: job.id, service: Some(service) },
        task: TaskId(0),
        incarnation: Incarnation(1),
        recoverable: false,
        protocol: task::Protocol::Xla,
    };
    let waiting = gateway.clone();
    let waits = tokio::spawn(async move { waiting.call(Command::Task(register)).await });
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(shown().await.as_deref(), Some("0"));
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(shown().await.as_deref(), Some("1"));
    waits.abort();
}

#[test]
fn nothing_is_labelled_by_what_users_name() {
    const NAMED_BY_US: [&str; 11] = [
        "call",
        "cluster",
        "dialect",
        "direction",
        "level",
        "outcome",
        "peer",
        "reason",
        "state",
        "version",
        "why",
    ];
    for metric in METRICS {
        let labels = metric.label.into_iter().flat_map(|labels| labels.split(','));
        assert!(labels.into_iter().all(|label| NAMED_BY_US.contains(&label)), "{}", metric.name);
        assert!(!metric.help.is_empty(), "{}", metric.name);
    }
}
