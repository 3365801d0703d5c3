//! Short runs of the benchmarks, without peers: they must work, whatever the figures.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

use std::path::Path;
use std::process::{Command, Output};

fn bench(arguments: &[&str], document: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tripod-chaos"))
        .arg("bench")
        .args(arguments)
        .arg("--write")
        .arg(document)
        .output()
        .unwrap()
}

/// Runs a benchmark on a copy of the document, and gives what it wrote under `name`.
fn section(name: &str, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join("benchmarks.md");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/benchmarks.md"), &document).unwrap();
    let output = bench(arguments, &document);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&document).unwrap();
    let (_, rest) = text.split_once(&format!("<!-- begin {name} -->")).unwrap();
    rest.split_once(&format!("<!-- end {name} -->")).unwrap().0.to_owned()
}

/// The cells of the row that begins with `first`.
fn row(section: &str, first: &str) -> Vec<String> {
    let row = section
        .lines()
        .find(|line| line.starts_with(&format!("| {first}")))
        .unwrap_or_else(|| panic!("{section}"));
    row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

#[test]
fn keys() {
    let section = section("kv", &["kv", "--rounds", "1", "--seconds", "0.3"]);
    for line in section.lines().filter(|line| line.contains("| tripod |")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert!(cells[5].parse::<u64>().unwrap() > 0, "no operations: {line}");
        assert_eq!(cells[10], "0", "errors: {line}");
    }
    assert_eq!(section.matches("| tripod |").count(), 11, "{section}");
    assert_eq!(section.matches("ours on one stream |").count(), 3, "{section}");
}

#[test]
fn barriers() {
    let section = section("barrier", &["barrier", "--rounds", "1", "--seconds", "0.5"]);
    for place in ["tripod, all on the leader", "tripod, all on one follower", "tripod, spread"] {
        let cells = row(&section, place);
        assert!(cells[1].parse::<u64>().unwrap() > 0, "{cells:?}");
        assert_eq!(cells[5], "0", "errors: {cells:?}");
    }
}

#[test]
fn failover_loses_nothing() {
    let section = section("failover", &["failover", "--trials", "1"]);
    for timing in ["tripod |", "tripod --timing fast |"] {
        let cells = row(&section, timing);
        assert!(cells[1].parse::<f64>().unwrap() > 0.0, "{cells:?}");
        assert!(cells[3].parse::<u64>().unwrap() >= 1_000, "too few acknowledgements: {cells:?}");
        assert_eq!(cells[4], "0", "acknowledged writes were lost: {cells:?}");
    }
}

#[test]
fn a_million_puts_of_which_there_are_few() {
    let section = section("disk", &["disk", "--keys", "300", "--times", "10"]);
    for what in ["puts per second", "bytes written", "MB in the data", "s from start to serving, all"] {
        let cells = row(&section, what);
        assert!(cells[2].parse::<f64>().unwrap() > 0.0, "{cells:?}");
    }
}

#[test]
fn a_few_nodes_of_mindspore() {
    let few = ["--nodes", "4", "--workers", "20", "--connections", "50", "--rounds", "1", "--trials", "1"];
    let section = section("mindspore", &[&["mindspore", "--rest-seconds", "4"][..], &few].concat());
    let figure = |first: &str| row(&section, first)[1].clone();
    let first = |figure: String| figure.split(' ').next().unwrap().parse::<f64>().unwrap();
    assert!(first(figure("20 workers: from the first connection")) > 0.0, "{section}");
    assert!(figure("heartbeats that were not answered").starts_with("0 of "), "{section}");
    assert!(first(figure("4 nodes of the parameter server")) > 0.0, "{section}");
    assert!(first(figure("an event until one of 4 nodes hears it")) > 0.0, "{section}");
    assert_eq!(figure("of 50 idle connections to one node stay open"), "50", "{section}");
    assert!(first(figure("the leader is killed")) > 0.0, "{section}");
}

#[test]
fn a_gang_behind_played_agents_passes_every_step_also_when_the_leader_dies_in_it() {
    let few = ["gang", "--tasks", "24", "--agents", "6", "--beat-seconds", "5", "--heartbeat-timeout", "8"];
    let section = section("gang-played", &[&few[..], &["--kill-leader"]].concat());
    let (calm, killed) = section.split_once("the leader is killed").unwrap();
    for gang in [calm, killed] {
        for step in ["register |", "barrier |", "second barrier |", "leave |"] {
            assert!(row(gang, step)[1].starts_with("p50 "), "{section}");
        }
        assert_eq!(row(gang, "streams that a node ended")[1], "0", "{section}");
    }
    assert!(row(killed, "register |")[1].ends_with("s from the kill"), "{section}");
    let count = |gang, what| row(gang, what)[1].parse::<u64>().unwrap();
    assert_eq!(count(calm, "calls that were sent again"), 0, "{section}");
    assert!(count(killed, "streams that ended without a word") > 0, "{section}");
    assert!(count(killed, "calls that were sent again") > 0, "{section}");
    let beats = row(calm, "heartbeats, p99")[1].rsplit_once(" of ").unwrap().1.parse::<u64>().unwrap();
    assert!(beats > 0, "{section}");
    // The second heartbeats of those agents that begin first.
    let told = &row(calm, "heartbeats, as they were told")[1];
    assert!(told.contains(" words, ") && !told.starts_with("0 in"), "{section}");
}

#[test]
fn a_run_that_cannot_measure_is_refused_before_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join("benchmarks.md");
    let output = bench(&["failover", "--trials", "0"], &document);
    assert_eq!(output.status.code(), Some(2), "zero trials are a usage error");
    let output = bench(&["kv", "--seconds", "0"], &document);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot measure for 0 seconds"));
    let output = bench(&["builds", "--before", "none", "--only", "puts"], &document);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no load `puts`; there are put-1"));
    let output = bench(&["gang", "--tasks", "10"], &document);
    assert_eq!(output.status.code(), Some(2), "tasks without agents are a usage error");
    let output = bench(&["gang", "--tasks", "10", "--agents", "11"], &document);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("11 agents are more than 10 tasks"));
    assert!(!document.exists());
}
