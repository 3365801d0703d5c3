//! What keeps a node from starting: each reason is one clear line, and the exit code is right.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;
use tripod_processes::cluster::ReservedPorts;
use tripod_wait::until_blocking;

use crate::support::{Dev, reserve_ports, seconds, stderr, tripod};

/// Tries to start a node alone on some of `ports`.
fn server(ports: &ReservedPorts, data: &Path, flags: &[&str]) -> Output {
    let address = |offset: u16| format!("127.0.0.1:{}", ports.first() + offset);
    let mut command = tripod();
    // Without a parent's pipe the node would stop at once, which is right for a test of starting.
    command.args(["server", "--exit-with-parent", "--data"]).arg(data).args([
        &format!("--client={}", address(0)),
        &format!("--peer={}", address(100)),
        &format!("--http={}", address(200)),
        &format!("--initial=1={},2={}", address(100), address(101)),
    ]);
    command.args(flags).output().expect("runs")
}

#[test]
fn a_port_in_use_is_named_with_its_flag() {
    let ports = reserve_ports();
    let port = ports.first();
    let data = tempfile::tempdir().expect("a directory");
    for (flag, offset) in [("--client", 0), ("--http", 200)] {
        let taken = TcpListener::bind(("127.0.0.1", port + offset)).expect("free");
        let output = server(&ports, &data.path().join("d"), &["--node=1"]);
        assert_eq!(output.status.code(), Some(1));
        let expected = format!("cannot listen on {flag} 127.0.0.1:{}: ", port + offset);
        assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
        drop(taken);
    }
    let _taken = TcpListener::bind(("127.0.0.1", port + 100)).expect("free");
    let output = server(&ports, &data.path().join("d"), &["--node=1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(&format!("127.0.0.1:{}", port + 100)), "{}", stderr(&output));
}

#[test]
fn a_data_directory_of_another_cluster_or_node_is_refused() {
    let ports = reserve_ports();
    let root = tempfile::tempdir().expect("a directory");
    let data = root.path().join("d");
    let own = server(&ports, &data, &["--node=1", "--cluster-id=one"]);
    assert!(own.status.success(), "{}", stderr(&own));

    let other = server(&ports, &data, &["--node=1", "--cluster-id=two"]);
    assert_eq!(other.status.code(), Some(1));
    let text = stderr(&other);
    assert!(text.contains("one") && text.contains("two"), "both clusters are not named: {text}");

    let other = server(&ports, &data, &["--node=2", "--cluster-id=one"]);
    assert_eq!(other.status.code(), Some(1), "{}", stderr(&other));

    let again = server(&ports, &data, &["--node=1", "--cluster-id=one"]);
    assert!(again.status.success(), "the refusals left a trace: {}", stderr(&again));
}

#[test]
fn a_data_directory_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let data = file.path().join("below-a-file");
    let output = server(&reserve_ports(), &data, &["--node=1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(&data.display().to_string()), "{}", stderr(&output));
}

/// Whoever collects logs alarms and looks up by the code, so the last line that a node logs must have it.
#[test]
fn the_last_line_of_the_log_of_a_node_that_ends_has_the_code() {
    let ports = reserve_ports();
    let data = tempfile::tempdir().expect("a directory");
    let _taken = TcpListener::bind(("127.0.0.1", ports.first())).expect("free");
    let (ended, said) =
        last_words(&server(&ports, &data.path().join("d"), &["--node=1", "--log-format=json"]));
    assert_eq!(ended["code"], "T1401", "{ended}");
    assert!(said.starts_with("error: T1401 listen-failed: "), "{said}");

    let nowhere = data.path().join("no-parent").join("d");
    let (ended, said) = last_words(&server(&reserve_ports(), &nowhere, &["--node=1", "--log-format=json"]));
    assert_eq!((&ended["code"], &ended["level"]), (&"T3109".into(), &"ERROR".into()), "{ended}");
    assert!(said.starts_with("error: T3109 data-parent: "), "{said}");

    let text = stderr(&server(&reserve_ports(), &nowhere, &["--node=1"]));
    let logged = text.lines().rev().nth(1).unwrap_or_default();
    assert!(logged.contains(" code=T3109"), "{text}");
}

/// The last line of the log, which is JSON, and the line for people behind it.
fn last_words(output: &Output) -> (Value, String) {
    assert_eq!(output.status.code(), Some(1), "{}", stderr(output));
    let text = stderr(output);
    let mut lines = text.lines().rev().map(str::to_owned);
    let (said, logged) = (lines.next().expect("an error"), lines.next().expect("a line of the log"));
    (serde_json::from_str(&logged).unwrap_or_else(|_| panic!("no JSON: {text}")), said)
}

#[test]
fn a_directory_that_is_in_use_is_refused() {
    let data = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let dev = Dev::start(&ports, data.path(), &[]);
    let id = dev.status()["cluster_id"].as_str().expect("an id").to_owned();
    let flags = ["--node=1", &format!("--cluster-id={id}")];
    let output = server(&reserve_ports(), &data.path().join("node-1").join("data"), &flags);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let well = || dev.status()["nodes"][0]["state"] == "ok";
    until_blocking("the node that was there to be well", || well().then_some(()));
    dev.end();
}

#[test]
fn wrong_usage_exits_with_two() {
    let cases: [&[&str]; 9] = [
        &["frobnicate"],
        &["dev", "--nodes", "0"],
        &["dev", "--port", "65000"],
        &["status", "--endpoints", "nowhere"],
        &["job", "create", "x", "--tasks", "1", "--heartbeat-timeout", "-1"],
        &["dev", "--tasks", "0"],
        &["dev", "--tasks", "3", "--members", "worker:2"],
        &["job", "create", "x", "--members", "worker:2", "--member", "ps:0=a:1"],
        &[
            "server",
            "--node=3",
            "--data=d",
            "--client=127.0.0.1:1",
            "--peer=127.0.0.1:2",
            "--http=127.0.0.1:3",
            "--initial=1=a:2",
        ],
    ];
    for arguments in cases {
        let output = tripod().args(arguments).output().expect("runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
}

#[test]
fn n7_nobody_listening_exits_with_three_and_says_so() {
    let ports = reserve_ports();
    let endpoint = format!("127.0.0.1:{}", ports.first());
    let cases: [&[&str]; 3] = [&["status"], &["kv", "get", "k"], &["leader", "transfer"]];
    for arguments in cases {
        let told = ["--endpoints", &endpoint, "--timeout", &seconds(0.3)];
        let output = tripod().args(arguments).args(told).output().expect("runs");
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {}", stderr(&output));
        assert!(
            stderr(&output).starts_with("error: T2102 not-connected: "),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

/// One of three, on a machine where the others have not been started yet. It ends with this value.
struct First(std::process::Child);

impl Drop for First {
    fn drop(&mut self) {
        // There is nobody to tell when even this fails.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn n11_n12_the_first_node_of_a_first_start_says_whom_it_waits_for_in_its_log_and_in_status() {
    let (ports, place) = (reserve_ports(), tempfile::tempdir().expect("a directory"));
    let address = |offset: u16| format!("127.0.0.1:{}", ports.first() + offset);
    let log = place.path().join("log");
    let mut command = tripod();
    command.args(["server", "--exit-with-parent", "--node=1", "--data"]).arg(place.path().join("d")).args([
        &format!("--client={}", address(0)),
        &format!("--peer={}", address(100)),
        &format!("--http={}", address(200)),
        &format!("--initial=1={},2={},3={}", address(100), address(101), address(102)),
    ]);
    command.stdin(Stdio::piped()).stderr(std::fs::File::create(&log).expect("made"));
    let _first = First(command.spawn().expect("starts"));
    let said = until_blocking("word of whom it waits for", || {
        let log = std::fs::read_to_string(&log).expect("a log");
        log.contains("forming: waiting for nodes 2, 3").then_some(log)
    });
    let calm = said.lines().filter(|line| line.contains("waiting for")).all(|line| line.contains(" INFO "));
    assert!(calm && !said.contains("empty the data directory"), "{said}");
    let output = tripod().args(["status", "--endpoints", &address(0)]).output().expect("runs");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(3), "{shown}");
    assert!(shown.contains("  forming\n") && shown.contains("node 1 waits for nodes 2, 3"), "{shown}");
    assert!(
        !shown.contains("voters") && !shown.contains("recover") && !shown.contains("calls that wait"),
        "{shown}"
    );
}
