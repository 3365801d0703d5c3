//! What operators look at: status with dead and stopped nodes, its watch, probes and metrics of real nodes. That status
//! comes within the two seconds that are promised is tested beside the command, by its own clock.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::mpsc;

use nix::sys::signal::Signal;
use serde_json::Value;
use tripod_wait::{deadline, until_blocking};

use crate::support::{Dev, end_by, reserve_ports, send, stderr, tripod};

fn node(status: &Value, id: u64) -> Value {
    let nodes = status["nodes"].as_array().expect("nodes");
    nodes.iter().find(|node| node["id"] == id).unwrap_or_else(|| panic!("node {id} in {status}")).clone()
}

fn kinds(status: &Value) -> Vec<(String, Value)> {
    let troubles = status["troubles"].as_array().expect("a list");
    let kind =
        |trouble: &Value| (trouble["kind"].as_str().expect("a word").to_owned(), trouble["node"].clone());
    troubles.iter().map(kind).collect()
}

/// Goes on where it stood, whatever becomes of the test.
struct Stopped(u32);

impl Stopped {
    fn stop(pid: u32) -> Self {
        send(pid, Signal::SIGSTOP);
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        send(self.0, Signal::SIGCONT);
    }
}

#[test]
fn status_tells_who_is_dead_or_stopped_and_what_to_do() {
    let data = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let dev = Dev::start(&ports, data.path(), &[]);
    dev.text(&["kv", "put", "k", "v"]);
    dev.text(&["job", "create", "shown", "--tasks", "2"]);
    let (leader, well) = until_blocking("a leader", || {
        let status = dev.status();
        Some((status["leader"].as_u64()?, status))
    });
    let told = node(&well, leader);
    assert_eq!(
        (&told["role"], &told["seen"]["by"], &told["seen"]["ms_ago"]),
        (&"leader".into(), &leader.into(), &0.into())
    );
    assert!(told["flush_p99_us"].as_u64().is_some_and(|micros| micros > 0), "{told}");
    assert!(dev.status_of_a_led_cluster().contains("DISK p99  SEEN"));

    // A stopped process takes connections and says nothing.
    let silent = leader % 3 + 1;
    let place = usize::try_from(silent - 1).expect("a small id");
    let stopped = Stopped::stop(dev.nodes[place]);
    let (told, by) = until_blocking("the leader to tell of the stopped node", || {
        let status = dev.status();
        let told = node(&status, silent);
        let by = status["leader"].as_u64()?;
        told["seen"]["ms_ago"].as_u64().is_some_and(|ms| ms >= 500).then_some((told, by))
    });
    assert_eq!((&told["state"], &told["seen"]["by"]), (&"unreachable".into(), &by.into()));
    assert!(told["why"].as_str().is_some_and(|why| why.contains("no answer within")), "{told}");
    assert!(kinds(&dev.status()).contains(&("unreachable".into(), silent.into())));
    drop(stopped);
    until_blocking("the stopped node to answer again", || {
        (node(&dev.status(), silent)["state"] == "ok").then_some(())
    });

    // One dead and one stopped: no leader any more. Who is left is a follower, which lets connections wait by
    // then.
    let dead = dev.current_leader();
    let (silent, left) = (dead % 3 + 1, (dead + 1) % 3 + 1);
    dev.kill(dead);
    let place = usize::try_from(silent - 1).expect("a small id");
    let _stopped = Stopped::stop(dev.nodes[place]);
    let told = until_blocking("the last node to know that nobody leads", || {
        let told = dev.status();
        let knows = told["leader"].is_null() && node(&told, left)["state"] == "no-leader";
        (knows && told["quorum"]["answering"] == 1).then_some(told)
    });
    let found = kinds(&told);
    assert_eq!(found[0].0, "no-leader", "{told}");
    for gone in [dead, silent] {
        assert!(found.contains(&("unreachable".into(), gone.into())), "{told}");
    }
    n8_a_person_sees_the_runbook_and_a_script_sees_the_exit_code(&dev, [dead, silent]);
    a_job_is_shown_as_the_last_node_remembers_it(&dev, left);
}

/// And programs see that it may be old.
fn a_job_is_shown_as_the_last_node_remembers_it(dev: &Dev, left: u64) {
    let show = |flags: &[&str]| {
        let endpoints = dev.endpoints(u16::try_from(left).expect("a small id"));
        let mut command = tripod();
        command.env("TRIPOD_ENDPOINTS", endpoints).args(["job", "show", "shown"]).args(flags);
        let output = command.output().expect("the command runs");
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        let told = format!("job show: nobody leads, so job `shown` is shown as node {left} remembers it (");
        assert!(stderr(&output).contains(&told), "{}", stderr(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let text = show(&[]);
    let told = format!("\nnobody leads: as node {left} remembers it, up to entry ");
    assert!(text.contains(&told) && text.contains("\n1     never-came  0"), "{text}");
    let json: Value = serde_json::from_str(&show(&["--json"])).expect("JSON");
    assert_eq!((&json["as_of"]["node"], &json["tasks"]), (&left.into(), &2.into()));
    assert!(json["as_of"]["index"].as_u64().is_some_and(|index| index > 0), "{json}");
}

/// One of three voters answers, and not the `gone` ones.
fn n8_a_person_sees_the_runbook_and_a_script_sees_the_exit_code(dev: &Dev, mut gone: [u64; 2]) {
    gone.sort_unstable();
    let [one, other] = gone;
    let output = dev.run(&["status"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(3), "{text}");
    let next = format!(
        "\nnext: start nodes {one}, {other}, of which 1 is enough; if they are gone for good: docs/runbooks/lost-quorum.md"
    );
    assert!(text.contains(&next), "{text}");
    let told = stderr(&output);
    assert!(told.starts_with("error: T2104 no-leader: no leader: 1 of 3 voters answer, 2 must"), "{told}");
}

/// A command whose lines are read as they come.
struct Watching {
    process: Child,
    lines: mpsc::Receiver<String>,
}

impl Watching {
    fn start(dev: &Dev, arguments: &[&str]) -> Self {
        let mut command = tripod();
        command.args(arguments).env("TRIPOD_ENDPOINTS", dev.endpoints(1)).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the command starts");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { process, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(deadline()).expect("another line")
    }

    /// Ends it as Ctrl-C does; it must have nothing to complain of.
    fn interrupt(mut self) {
        send(self.process.id(), Signal::SIGINT);
        let status = until_blocking("the end of the watch", || self.process.try_wait().expect("waited"));
        assert_eq!(status.code(), Some(0), "{status}");
    }
}

#[test]
fn a_watch_goes_on_through_a_death_and_ends_well_on_ctrl_c() {
    let data = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let dev = Dev::start(&ports, data.path(), &[]);
    let watch = Watching::start(&dev, &["status", "--watch=0.1", "-o", "json"]);
    let next = || serde_json::from_str::<Value>(&watch.line()).expect("a line is one object");
    let first = next();
    assert_eq!(first["nodes"].as_array().map(Vec::len), Some(3));
    dev.kill(dev.current_leader() % 3 + 1);
    until_blocking("the watch to tell of it", || {
        kinds(&next()).iter().any(|(kind, _)| kind == "unreachable").then_some(())
    });
    watch.interrupt();

    let table = Watching::start(&dev, &["status", "--watch"]);
    let heads = || {
        let line = table.line();
        assert!(!line.contains('\x1b'), "a pipe is no terminal: {line:?}");
        line.starts_with("cluster dev-").then_some(())
    };
    until_blocking("the first table", heads);
    until_blocking("the second table", heads);
    table.interrupt();
    dev.end();
}

/// Status line and body of a GET at a node's http port.
fn get(dev: &Dev, node: u16, path: &str) -> (String, String) {
    let address = format!("127.0.0.1:{}", dev.port + 200 + node - 1);
    let mut stream = TcpStream::connect(&address).expect("connected");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("answered");
    let (head, body) = text.split_once("\r\n\r\n").expect("an answer of HTTP");
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

/// The value of a series in a page.
fn value(page: &str, series: &str) -> Option<f64> {
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
    line.parse().ok()
}

#[test]
fn probes_and_metrics_tell_of_a_real_cluster() {
    let data = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let dev = Dev::start(&ports, data.path(), &[]);
    dev.text(&["kv", "put", "k", "v"]);
    let (leader, page, follower, follower_page) =
        until_blocking("every stage of a write, timed on the leader", || {
            // More than the 32 proposals of which one is followed.
            dev.text(&["bench", "kv", "--op", "put", "--clients", "4", "--seconds", "1"]);
            let leader = u16::try_from(dev.current_leader()).expect("a small id");
            let (head, page) = get(&dev, leader, "/metrics");
            assert_eq!(head, "HTTP/1.1 200 OK");
            let stages = ["queue", "append", "flush", "replicate", "apply", "reply"];
            let count = |stage: &str| value(&page, &format!("tripod_write_{stage}_seconds_count"));
            let timed = stages.iter().all(|stage| count(stage).is_some_and(|count| count >= 1.0));
            let well =
                timed && ["tripod_ready", "tripod_leader"].iter().all(|name| value(&page, name) == Some(1.0));
            let follower = leader % 3 + 1;
            let (_, follower_page) = get(&dev, follower, "/metrics");
            // Leadership may move at any time on a busy machine, and it is a moment before a new leader knows who lags.
            let follows = value(&follower_page, "tripod_leader") == Some(0.0);
            let knows = page.matches("\ntripod_peer_lag_entries{").count() == 2;
            (well && follows && knows).then_some((leader, page, follower, follower_page))
        });
    assert_eq!(value(&page, "tripod_voters"), Some(3.0));
    assert!(value(&page, "tripod_keys").is_some_and(|keys| keys >= 1.0), "{page}");
    for peer in (1..=3).filter(|peer| *peer != leader) {
        for series in ["tripod_peer_lag_entries", "tripod_peer_silence_seconds"] {
            assert!(
                value(&page, &format!("{series}{{peer=\"{peer}\"}}")).is_some(),
                "{series} of {peer}\n{page}"
            );
        }
    }
    assert!(!follower_page.contains("tripod_peer_lag_entries{"), "only the leader knows who lags");
    until_blocking("a follower that is ready", || {
        let (head, body) = get(&dev, follower, "/readyz?verbose");
        (head == "HTTP/1.1 200 OK" && body == "[+]leader ok\n[+]read ok\n[+]disk ok\n[+]drained ok\nready\n")
            .then_some(())
    });
    let id = follower.to_string();
    // The first feature level knows no drained nodes; it is raised a moment after the start.
    until_blocking("a drained node", || dev.run(&["node", "drain", &id]).status.success().then_some(()));
    until_blocking("a drained node that is not ready", || {
        let (head, body) = get(&dev, follower, "/readyz");
        let expected = head == "HTTP/1.1 503 Service Unavailable" && body.contains("`tripod node undrain");
        (expected && value(&get(&dev, follower, "/metrics").1, "tripod_drained") == Some(1.0)).then_some(())
    });
    until_blocking("another node to be ready", || {
        (get(&dev, leader, "/readyz").0 == "HTTP/1.1 200 OK").then_some(())
    });
    until_blocking("a node that is drained no more", || {
        dev.run(&["node", "undrain", &id]).status.success().then_some(())
    });
    until_blocking("a node that is ready again", || {
        (get(&dev, follower, "/readyz").0 == "HTTP/1.1 200 OK").then_some(())
    });

    // Without the others it is alive, and ready for nothing.
    for node in (1..=3).filter(|node| *node != follower) {
        dev.kill(u64::from(node));
    }
    until_blocking("a node that is not ready", || {
        let (head, body) = get(&dev, follower, "/readyz?verbose");
        (head == "HTTP/1.1 503 Service Unavailable" && body.contains("\n[-]read: ")).then_some(())
    });
    assert_eq!(value(&get(&dev, follower, "/metrics").1, "tripod_ready"), Some(0.0));
    assert_eq!(get(&dev, follower, "/livez").0, "HTTP/1.1 200 OK");
    dev.end();
}

#[test]
fn the_log_of_a_service_can_be_json_and_tells_what_was_asked_for() {
    let data = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let mut command = tripod();
    command.args([
        "dev",
        "--nodes",
        "1",
        "--json",
        "--verbose",
        "--port",
        &ports.first().to_string(),
        "--data",
    ]);
    command.arg(data.path()).env("TRIPOD_LOG", "gateway=debug,off").env("TRIPOD_LOG_FORMAT", "json");
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut output = BufReader::new(process.stdout.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("\"ready\":true") {
        line.clear();
        assert_ne!(output.read_line(&mut line).expect("read"), 0, "dev ended");
    }
    end_by(process.id());
    let ended = process.wait_with_output().expect("waited");
    assert!(ended.status.success(), "{}", stderr(&ended));
    let lines: Vec<Value> = stderr(&ended)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line:?} is no JSON")))
        .collect();
    assert!(lines.iter().any(|line| line["message"] == "session opened"), "{lines:?}");
    assert!(
        lines
            .iter()
            .all(|line| line["target"].as_str().is_some_and(|part| part.starts_with("tripod_gateway")))
    );
}
