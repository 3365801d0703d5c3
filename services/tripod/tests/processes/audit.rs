//! The audit log of a real node: what has a line, who reads it, and what happens when nothing can be written.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use hyper_util::rt::TokioIo;
use nix::sys::signal::Signal;
use tokio::net::UnixStream;
use tonic::transport::{Endpoint, Uri};
use tower::service_fn;
use tripod_processes::cluster::ReservedPorts;
use tripod_proto::tripod::v1::NoteJobRequest;
use tripod_proto::tripod::v1::jobs_client::JobsClient;
use tripod_wait::until_blocking;

use crate::schemas::check;
use crate::support::{kill_by, reserve_ports, send, stderr, tripod};

struct Node<'a> {
    ports: &'a ReservedPorts,
    place: &'a Path,
    child: Child,
}

impl<'a> Node<'a> {
    fn start(ports: &'a ReservedPorts, place: &'a Path, flags: &[&str]) -> Self {
        let address = |offset: u16| format!("127.0.0.1:{}", ports.first() + offset);
        let jobs = ports.first() + 30;
        let log = fs::File::options().append(true).create(true).open(place.join("log")).expect("made");
        let child = tripod()
            .args(["server", "--node", "1", "--data", "data", "--exit-with-parent"])
            .args(["--initial", &format!("1={}", address(1)), "--client", &address(0), "--peer", &address(1)])
            .args(["--http", &address(2), "--job-ports", &format!("{jobs}-{}", jobs + 3)])
            .args(flags)
            .current_dir(place)
            .stdin(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("starts");
        let node = Self { ports, place, child };
        until_blocking("a node that serves", || {
            node.run(&["kv", "put", "key", "value"]).status.success().then_some(())
        });
        node
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command: Command = tripod();
        command.args(arguments).env("TRIPOD_ENDPOINTS", format!("127.0.0.1:{}", self.ports.first()));
        command.current_dir(self.place).output().expect("runs")
    }

    fn audit(&self) -> PathBuf {
        self.place.join("audit")
    }

    fn lines(&self) -> String {
        let files = fs::read_dir(self.audit()).into_iter().flatten();
        files.map(|file| fs::read_to_string(file.expect("readable").path()).expect("readable")).collect()
    }

    /// Ends it as an operator does.
    fn stop(mut self) {
        send(self.child.id(), Signal::SIGTERM);
        self.child.wait().expect("waited");
    }
}

impl Drop for Node<'_> {
    fn drop(&mut self) {
        // One that was stopped has ended already.
        if let Ok(None) = self.child.try_wait() {
            kill_by(self.child.id());
            // There is nobody to tell when even this fails.
            let _ = self.child.wait();
        }
    }
}

#[test]
fn s55_what_changes_a_cluster_has_a_line_and_a_line_that_is_taken_out_is_named() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let node = Node::start(&ports, place.path(), &["--audit-dir", "audit"]);
    let create = node.run(&["job", "create", "train", "--tasks", "1"]);
    assert!(create.status.success(), "{}", stderr(&create));
    let note = node.run(&["job", "note", "train", "a word"]);
    assert!(note.status.success(), "{}", stderr(&note));
    let save = node.run(&["snapshot", "save", "saved"]);
    assert!(save.status.success(), "{}", stderr(&save));
    let delete = node.run(&["job", "delete", "train", "--yes"]);
    assert!(delete.status.success(), "{}", stderr(&delete));
    assert!(!node.run(&["job", "delete", "train", "--yes"]).status.success());
    let made = node.run(&["auth", "token", "create", "viewer", "--name", "bob", "--out", "bob.token"]);
    assert!(made.status.success(), "{}", stderr(&made));
    let token = fs::read_to_string(place.path().join("bob.token")).expect("written");
    let id = token.split('_').nth(2).expect("the third part").to_owned();
    assert!(node.run(&["auth", "token", "revoke", &id]).status.success());

    let lines = node.lines();
    let has = |words: &[&str]| {
        assert!(lines.lines().any(|line| words.iter().all(|word| line.contains(word))), "{words:?}: {lines}");
    };
    has(&["\"change\":\"opened\""]);
    has(&["/tripod.v1.Jobs/Create", "\"job\":\"train\"", "\"outcome\":\"done\""]);
    has(&["/tripod.v1.Jobs/Note", "\"job\":\"train\"", "\"outcome\":\"done\""]);
    has(&["/tripod.v1.Snapshots/Save", "the state", "\"outcome\":\"done\""]);
    has(&["/tripod.v1.Jobs/Delete", "\"job\":\"train\"", "\"outcome\":\"done\"", "\"from\":\"127.0.0.1\""]);
    has(&["/tripod.v1.Jobs/Delete", "\"outcome\":\"refused\"", "job-unknown"]);
    has(&["/tripod.v1.Tokens/Create", "viewer bob", "\"outcome\":\"done\""]);
    has(&["/tripod.v1.Tokens/Revoke", &id]);
    let secret = token.split('_').nth(3).expect("the fourth part");
    assert!(
        !lines.contains(secret)
            && !lines.contains("Kv/Put")
            && !lines.contains("value")
            && !lines.contains("a word"),
        "{lines}"
    );

    let verify = node.run(&["audit", "verify", "audit", "-o", "json"]);
    assert!(verify.status.success(), "{}", stderr(&verify));
    check("audit verify", &serde_json::from_slice(&verify.stdout).expect("JSON"));
    let tail = node.run(&["audit", "tail", "audit", "-n", "1"]);
    assert_eq!(String::from_utf8_lossy(&tail.stdout).lines().count(), 1);
    let audit = node.audit();
    node.stop();
    let mut files = fs::read_dir(&audit).expect("readable").map(|entry| entry.expect("readable").path());
    let file = files.find(|path| path.extension().is_some_and(|ending| ending == "log")).expect("a file");
    let text = fs::read_to_string(&file).expect("readable");
    assert!(text.lines().last().expect("a line").contains("\"change\":\"stopped\""), "{text}");

    let without: Vec<&str> =
        text.lines().enumerate().filter(|(place, _)| *place != 2).map(|(_, line)| line).collect();
    fs::write(&file, without.join("\n") + "\n").expect("written");
    let verify = tripod().args(["audit", "verify"]).arg(&file).output().expect("runs");
    assert_eq!(verify.status.code(), Some(1));
    let told = stderr(&verify);
    assert!(told.contains("T1538 audit-broken") && told.contains("record 3 is missing before it"), "{told}");
}

#[test]
fn where_lines_are_required_a_call_is_written_down_before_and_after() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let node = Node::start(&ports, place.path(), &["--audit-stderr", "--audit", "required"]);
    assert!(node.run(&["job", "create", "train", "--tasks", "1"]).status.success());
    assert!(node.run(&["job", "delete", "train", "--yes"]).status.success());
    let log = fs::read_to_string(place.path().join("log")).expect("readable");
    let of_delete: Vec<&str> = log.lines().filter(|line| line.contains("/tripod.v1.Jobs/Delete")).collect();
    assert_eq!(of_delete.len(), 2, "{log}");
    assert!(
        of_delete[0].contains("\"outcome\":\"begun\"") && of_delete[1].contains("\"outcome\":\"done\""),
        "{log}"
    );
    node.stop();

    let mut refused = tripod();
    let refused = refused.args(["server", "--node", "1", "--data", "d", "--client", "127.0.0.1:1"]);
    let refused =
        refused.args(["--peer", "127.0.0.1:2", "--http", "127.0.0.1:3", "--initial", "1=127.0.0.1:2"]);
    let refused = refused.args(["--audit", "required"]).current_dir(place.path()).output().expect("runs");
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--audit-dir"), "{}", stderr(&refused));
}

#[test]
fn whoever_calls_by_the_unix_socket_is_named_by_the_system() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let socket = place.path().join("socket");
    let flag = format!("--client-socket={}", socket.display());
    let node = Node::start(&ports, place.path(), &["--audit-dir", "audit", &flag]);
    assert!(node.run(&["job", "create", "train", "--tasks", "1"]).status.success());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("made");
    runtime.block_on(async {
        let connect = service_fn(move |_: Uri| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        });
        let endpoint = Endpoint::from_static("http://localhost");
        let channel = endpoint.connect_with_connector(connect).await.expect("it is let in");
        let note = NoteJobRequest { name: "train".to_owned(), note: "a word".to_owned() };
        JobsClient::new(channel).note(note).await.expect("noted");
    });
    let own = fs::metadata(place.path()).expect("it is there").uid();
    let who = format!("\"who\":\"user/{own}\",\"kind\":\"user\",\"how\":\"uid\"");
    let lines = node.lines();
    let of_note = lines.lines().find(|line| line.contains("/tripod.v1.Jobs/Note")).expect("a line");
    assert!(of_note.contains(&who), "{who}: {of_note}");
    let by_port = lines.lines().find(|line| line.contains("/tripod.v1.Jobs/Create")).expect("a line");
    assert!(by_port.contains("\"who\":\"\"") && by_port.contains("\"how\":\"nothing\""), "{by_port}");
}
