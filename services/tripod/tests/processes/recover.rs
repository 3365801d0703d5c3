//! Directories of dead nodes: what the doctor says of them, and what is recovered when the quorum is lost.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use serde_json::Value;
use tripod_processes::cluster::ReservedPorts;
use tripod_wait::until_blocking;

use crate::page::{Block, blocks};
use crate::screen::assert_as_shown;
use crate::support::{Dev, kill_by, reserve_ports, stderr, tripod};

const PAGE: &str = include_str!("../../../../docs/runbooks/lost-quorum.md");

/// Where `tripod dev` keeps the data of a node.
fn data(root: &Path, node: u64) -> PathBuf {
    root.join(format!("node-{node}")).join("data")
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn tree(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("readable") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(tree(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).expect("readable"));
        }
    }
    found
}

/// What a command says that must be refused with exit code 1.
fn refused(dev: &Dev, arguments: &[&str], code: &str) {
    let output = dev.run(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(code), "{arguments:?} is not refused with {code}: {}", stderr(&output));
}

#[test]
fn the_doctor_reads_what_a_killed_node_left_and_changes_nothing() {
    let root = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let dev = Dev::start(&ports, root.path(), &[]);
    for number in 0..20 {
        dev.text(&["kv", "put", &format!("key-{number}"), "value"]);
    }
    let id = dev.status()["cluster_id"].clone();
    let node = dev.current_leader();
    let place = data(root.path(), node);
    refused(&dev, &["doctor", &text(&place)], "T5301 doctor-running");
    dev.kill(node);
    until_blocking("the lock of a dead node to go", || {
        dev.run(&["doctor", &text(&place)]).status.success().then_some(())
    });

    let before = tree(&place);
    let report = dev.json(&["doctor", &text(&place), "-o", "json"]);
    assert_eq!((&report["identity"]["cluster_id"], &report["identity"]["node"]), (&id, &node.into()));
    assert_eq!((&report["vote"]["node"], &report["problems"]), (&node.into(), &Value::Array(vec![])));
    let last = report["log"]["last"]["index"].as_u64().expect("an index");
    let first = last - 9;
    let lines = dev.text(&["doctor", &text(&place), "--export", &format!("{first}..{last}")]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let indexes: Vec<u64> = lines.iter().filter_map(|line| line["index"].as_u64()).collect();
    assert_eq!(indexes, (first..=last).collect::<Vec<_>>());
    assert!(lines.iter().any(|line| line["kind"] == "command"), "{lines:?}");
    refused(&dev, &["doctor", &text(&place), "--export", &format!("0..{}", last + 1)], "could be printed");
    let told = dev.text(&["doctor", &text(&place)]);
    assert!(told.contains("the node would start"), "{told}");
    assert!(tree(&place) == before, "something was changed");

    let output = dev.run(&["doctor", &text(root.path())]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    dev.end();
}

/// One node on what was restored. It ends with this value.
struct Alone {
    server: Child,
    endpoint: String,
}

impl Alone {
    fn start(ports: &ReservedPorts, data: &Path, cluster_id: &str) -> Self {
        let address = |offset: u16| format!("127.0.0.1:{}", ports.first() + offset);
        let mut command = tripod();
        command.args(["server", "--node=1", "--exit-with-parent", "--data"]).arg(data).args([
            &format!("--client={}", address(0)),
            &format!("--peer={}", address(100)),
            &format!("--http={}", address(200)),
            &format!("--initial=1={}", address(100)),
            &format!("--cluster-id={cluster_id}"),
            &format!("--job-ports={}-{}", ports.first() + 300, ports.first() + 399),
        ]);
        let server = command.stdin(Stdio::piped()).spawn().expect("starts");
        Self { server, endpoint: address(0) }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        tripod().args(arguments).args(["--endpoints", &self.endpoint]).output().expect("runs")
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        if matches!(self.server.try_wait(), Ok(None)) {
            kill_by(self.server.id());
            // There is nobody to tell when even this fails.
            let _ = self.server.wait();
        }
    }
}

/// One node of three is left. It still gives what it has, and says no when it is asked for all there is.
fn n6_calls_without_a_quorum_name_the_runbook_and_a_local_backup_is_made(dev: &Dev) {
    let place = tempfile::tempdir().expect("a directory");
    let file = text(&place.path().join("local.snap"));
    for held in [&["snapshot", "save", &file][..], &["kv", "put", "k", "v"], &["job", "list"]] {
        // As long as a node holds calls for a leader that may come, which is not an answer.
        let output = dev.run(&[held, &["--timeout", "1"]].concat());
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{told}");
        assert!(
            told.starts_with("error: T2104 no-leader: no leader: 1 of 3 voters answer, 2 must"),
            "{told}"
        );
        assert!(told.contains("docs/runbooks/lost-quorum.md"), "{told}");
    }
    assert_eq!(fs::read_dir(place.path()).expect("readable").count(), 0, "no half file is left");
    let saved = dev.json(&["snapshot", "save", &file, "--local", "--json"]);
    assert_eq!(saved["counts"]["keys"], 20);
}

/// With the commands of the runbook.
#[test]
fn a_lost_quorum_is_recovered_from_the_survivor_that_is_furthest() {
    let root = tempfile::tempdir().expect("a directory");
    let out = tempfile::tempdir().expect("a directory");
    let (ports, new_ports) = (reserve_ports(), reserve_ports());
    let dev = Dev::start(&ports, root.path(), &[]);
    for number in 0..10 {
        dev.text(&["kv", "put", &format!("early-{number}"), "value"]);
    }
    let file = text(&out.path().join("recovered.snap"));
    let place = |node: u64| text(&data(root.path(), node));
    let leader = dev.current_leader();
    let (behind, other) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    refused(&dev, &["recover", &place(behind), "--save", &file], "T5301 doctor-running");
    dev.kill(behind);
    until_blocking("the lock of a dead node to go", || {
        dev.run(&["doctor", &place(behind)]).status.success().then_some(())
    });
    refused(&dev, &["recover", &place(behind), "--save", &file], "T5401 recover-quorum");
    for number in 0..10 {
        dev.text(&["kv", "put", &format!("late-{number}"), "value"]);
    }
    dev.kill(other);
    n6_calls_without_a_quorum_name_the_runbook_and_a_local_backup_is_made(&dev);
    refused(&dev, &["recover", &place(behind), "--save", &file], "T5402 recover-behind");
    dev.kill(leader);
    until_blocking("the lock of a dead node to go", || {
        dev.run(&["doctor", &place(leader)]).status.success().then_some(())
    });
    assert_eq!(fs::read_dir(out.path()).expect("readable").count(), 0, "no refusal left a file");
    refused(
        &dev,
        &["recover", &place(behind), "--compare", &place(leader), "--save", &file],
        "T5402 recover-behind",
    );

    let new = out.path().join("new");
    let address = format!("127.0.0.1:{}", new_ports.first() + 100);
    // A page's names and what they are here; the longer ones first, of which others are the beginning.
    let names = [
        ("/var/lib/tripod-2", text(&new)),
        ("/var/lib/tripod", place(leader)),
        ("/mnt/node-2/tripod", place(behind)),
        ("10.0.0.1:7800", address),
        ("recovered.snap", file),
    ];
    let typed = |block: &Block| {
        let [line] = &block.lines[..] else { panic!("{block:?}") };
        let here = names.iter().fold(line.clone(), |line, (on_page, here)| line.replace(on_page, here));
        let printed = dev.text(&here.split_whitespace().skip(1).collect::<Vec<_>>());
        let as_on_page =
            names.iter().fold(printed.clone(), |text, (on_page, here)| text.replace(here, on_page));
        assert_as_shown(line, &block.shows, &as_on_page);
        printed
    };
    let page = blocks(PAGE);
    let [look, recover, restore] = &page[..] else { panic!("{page:?}") };
    typed(look);
    typed(recover);
    let restored = typed(restore);
    let id = restored.lines().find_map(|line| line.strip_prefix("cluster ")).expect("an id").trim();
    let alone = Alone::start(&new_ports, &new, id);
    for key in (0..10).flat_map(|number| [format!("early-{number}"), format!("late-{number}")]) {
        let value = until_blocking("a key in the new cluster", || {
            let output = alone.run(&["kv", "get", &key]);
            output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
        });
        assert_eq!(value, "value", "{key}");
    }
}
