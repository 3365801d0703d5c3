//! `tripod agent`, with real processes.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tripod_wait::until_blocking;

use crate::support::{Dev, end_by, kill_by, reserve_ports, stderr, tripod};

/// A running `tripod agent`.
struct Agent {
    process: Child,
    /// What it printed when it listened.
    said: Value,
}

impl Agent {
    fn start(flags: &[&str]) -> Self {
        let mut process = tripod()
            .args(["agent", "--json", "--exit-with-parent"])
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut line = String::new();
        let output = process.stdout.as_mut().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("readable");
        let said = serde_json::from_str(&line).expect("one line of JSON");
        Self { process, said }
    }

    /// Waits for its end and tells the exit code.
    fn exit_code(&mut self) -> Option<i32> {
        until_blocking("the agent's end", || self.process.try_wait().expect("waited")).code()
    }
}

impl Drop for Agent {
    /// A failed test must not leave it behind.
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            kill_by(self.process.id());
            // There is nobody to tell when even this fails.
            let _ = self.process.wait();
        }
    }
}

/// Everything below a directory is for its owner only.
fn check_private(directory: &Path) {
    for entry in fs::read_dir(directory).expect("readable") {
        let path = entry.expect("an entry").path();
        let found = fs::symlink_metadata(&path).expect("there");
        assert_eq!(found.mode() & 0o077, 0, "{} has mode {:o}", path.display(), found.mode() & 0o7777);
        if found.is_dir() {
            check_private(&path);
        }
    }
}

#[test]
fn a_process_of_another_user_is_turned_away_at_the_socket_and_told_why() {
    const SOCKET: &str = "TRIPOD_TEST_SOCKET";
    const NAMED: u32 = 12_344;
    const STRANGER: u32 = 12_345;
    if let Some(socket) = std::env::var_os(SOCKET) {
        let mut stream = UnixStream::connect(socket).expect("anybody may connect");
        let mut said = vec![];
        // A client is greeted at once; a stranger is told and left.
        _ = stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
        _ = stream.take(64).read_to_end(&mut said);
        println!("\nheard {}", String::from_utf8_lossy(&said).escape_debug());
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("set");
    if directory.path().metadata().expect("there").uid() != 0 {
        eprintln!("not root: there can be no process of another user");
        return;
    }
    let socket = directory.path().join("agent.sock");
    let (listen, named) = (format!("--listen=unix:{}", socket.display()), format!("--socket-uids={NAMED}"));
    let _agent = Agent::start(&[&listen, &named, "--cluster=127.0.0.1:1", "--job=train"]);
    // The other user need not reach the directory of the build.
    let program = directory.path().join("program");
    fs::copy(std::env::current_exe().expect("this program"), &program).expect("copied");
    let heard = |uid: u32| {
        let name = "agent::a_process_of_another_user_is_turned_away_at_the_socket_and_told_why";
        let mut as_user = Command::new(&program);
        as_user.args(["--exact", name, "--nocapture"]).env(SOCKET, &socket).current_dir("/").uid(uid);
        String::from_utf8(as_user.output().expect("ran").stdout).expect("text")
    };
    let stranger = heard(STRANGER);
    assert!(stranger.contains("T1402 not-private: this socket serves user 0"), "{stranger}");
    let served = heard(NAMED);
    assert!(served.contains("heard ") && !served.contains("T1402"), "{served}");
}

#[test]
fn an_agent_says_where_it_listens_creates_its_job_and_stops_when_told() {
    let ports = reserve_ports();
    let data = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(&ports, data.path(), &[]);
    let socket = data.path().join("agent.sock");
    let unix = format!("unix:{}", socket.display());
    let cluster = dev.endpoints(1);
    let flags =
        ["--listen=127.0.0.1:0", "--listen", &unix, "--cluster", &cluster, "--job=train", "--tasks=3"];
    let mut agent = Agent::start(&[&flags[..], &["--heartbeat-timeout=20"]].concat());

    let address = agent.said["listen"][0].as_str().expect("a place").to_owned();
    assert!(address.starts_with("127.0.0.1:") && !address.ends_with(":0"), "{}", agent.said);
    assert_eq!(agent.said, json!({ "listen": [address, unix], "job": "train" }));
    TcpStream::connect(&address).expect("the port is open");
    UnixStream::connect(&socket).expect("the socket is open");
    let job = until_blocking("the job", || {
        let shown = dev.run(&["job", "show", "train", "--json"]);
        serde_json::from_slice::<Value>(&shown.stdout).ok()
    });
    assert_eq!((&job["tasks"], &job["heartbeat_timeout_ms"]), (&json!(3), &json!(20_000)));

    end_by(agent.process.id());
    assert_eq!(agent.exit_code(), Some(0));
    TcpStream::connect(&address).expect_err("the port is closed");
    // Whatever three nodes and an agent made, sled's own files among it.
    check_private(data.path());
    dev.end();
}

#[test]
fn an_agent_needs_no_cluster_to_start_and_ends_with_its_parent() {
    let ports = reserve_ports();
    let nobody = format!("127.0.0.1:{}", ports.first());
    let mut agent = Agent::start(&["--listen=127.0.0.1:0", "--cluster", &nobody, "--job=train"]);
    drop(agent.process.stdin.take());
    assert_eq!(agent.exit_code(), Some(0));
}

#[test]
fn a_second_agent_at_the_same_place_is_refused_and_the_first_goes_on() {
    let ports = reserve_ports();
    let nobody = format!("--cluster=127.0.0.1:{}", ports.first());
    let folder = tempfile::tempdir().expect("a directory");
    let socket = folder.path().join("agent.sock");
    let unix = format!("unix:{}", socket.display());
    let first = Agent::start(&["--listen=127.0.0.1:0", "--listen", &unix, &nobody, "--job=train"]);
    let address = first.said["listen"][0].as_str().expect("a place");
    for place in [address, &unix] {
        let second =
            tripod().args(["agent", "--listen", place, &nobody, "--job=train"]).output().expect("runs");
        let text = stderr(&second);
        assert_eq!(second.status.code(), Some(1), "{text}");
        assert!(text.contains(&format!("cannot listen on --listen {place}: ")), "{text}");
        assert!(text.contains("perhaps another agent, listens there"), "{text}");
        assert!(second.stdout.is_empty());
    }
    UnixStream::connect(&socket).expect("the first agent goes on");
}

#[test]
fn a_socket_of_a_killed_agent_is_taken_over() {
    let ports = reserve_ports();
    let nobody = format!("--cluster=127.0.0.1:{}", ports.first());
    let folder = tempfile::tempdir().expect("a directory");
    let socket = folder.path().join("agent.sock");
    let unix = format!("--listen=unix:{}", socket.display());
    let mut killed = Agent::start(&[&unix, &nobody, "--job=train"]);
    kill_by(killed.process.id());
    assert_eq!(killed.exit_code(), None, "a signal ended it");
    let _next = Agent::start(&[&unix, &nobody, "--job=train"]);
    UnixStream::connect(&socket).expect("the next agent listens");
}

#[test]
fn flags_that_cannot_be_meant_are_refused_by_name() {
    let cases: [(&[&str], i32, &str); 8] = [
        (&["--job=train"], 2, "--listen"),
        (&["--listen=127.0.0.1:0"], 2, "--job"),
        (&["--listen=nowhere", "--job=train"], 2, "`nowhere` is neither HOST:PORT nor unix:PATH"),
        (&["--listen=unix:", "--job=train"], 2, "`unix:` has no path"),
        (&["--listen=127.0.0.1:0", "--job=train", "--cluster=here"], 2, "`here` is not HOST:PORT"),
        (&["--listen=127.0.0.1:0", "--job="], 2, "--job is empty"),
        (&["--listen=127.0.0.1:0", "--job=train", "--recoverable"], 2, "add --tasks, or leave them out"),
        (&["--listen=0.0.0.0:0", "--job=train"], 1, "other machines could reach it"),
    ];
    for (flags, code, expected) in cases {
        let output = tripod().arg("agent").args(flags).output().expect("runs");
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {text}");
        assert!(text.contains(expected), "{flags:?}: {text}");
        assert!(output.stdout.is_empty());
    }
}
