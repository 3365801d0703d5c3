//! What processes of ours write is for their user only, with whatever umask they were started.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tripod_wait::until_blocking;

use crate::support::{kill_by, reserve_ports, stderr, tripod};

/// What others may do to such a file: nothing.
const OTHERS: u32 = 0o077;

/// A command that a shell starts which lets everybody do everything.
fn wide_open(arguments: &[&str], place: &Path) -> Command {
    let mut command = Command::new("sh");
    // The process that is killed is the node, not its shell.
    command.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(tripod().get_program()).args(arguments);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TRIPOD_")) {
        command.env_remove(name);
    }
    command.current_dir(place);
    command
}

/// A node that goes with this value.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            kill_by(self.0.id());
            // There is nobody to tell when even this fails.
            let _ = self.0.wait();
        }
    }
}

/// The modes of everything below a directory, by the path within it. What goes while it is looked at is left out.
fn modes(root: &Path, within: &str, found: &mut BTreeMap<String, u32>) {
    for entry in fs::read_dir(root.join(within)).into_iter().flatten().flatten() {
        let Ok(data) = entry.metadata() else { continue };
        let path = format!("{within}{}", entry.file_name().to_string_lossy());
        found.insert(path.clone(), data.permissions().mode() & 0o777);
        if data.is_dir() {
            modes(root, &format!("{path}/"), found);
        }
    }
}

fn written(place: &Path) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    modes(place, "", &mut found);
    found
}

#[test]
fn s53_what_is_written_under_umask_000_is_for_its_user_only() {
    let place = tempfile::tempdir().expect("a directory");
    let log = tempfile::tempfile().expect("a file");
    let ports = reserve_ports();
    let address = |offset: u16| format!("127.0.0.1:{}", ports.first() + offset);
    let jobs = format!("{}-{}", ports.first() + 30, ports.first() + 33);
    let initial = format!("1={}", address(1));
    let socket = place.path().join("client.sock").display().to_string();
    let (client, peer, http) = (address(0), address(1), address(2));
    let server = [
        "server",
        "--node",
        "1",
        "--data",
        "data",
        "--exit-with-parent",
        "--initial",
        &initial,
        "--client",
        &client,
        "--peer",
        &peer,
        "--http",
        &http,
        "--job-ports",
        &jobs,
        "--backup-dir",
        "backups",
        "--backup-every",
        "1",
        "--audit-dir",
        "audit",
        "--client-socket",
        &socket,
    ];
    let child = wide_open(&server, place.path()).stdin(Stdio::piped()).stderr(log).spawn().expect("starts");
    let _node = Node(child);
    let run = |arguments: &[&str]| -> Output {
        let mut command = wide_open(arguments, place.path());
        command.env("TRIPOD_ENDPOINTS", &client).stdin(Stdio::null()).output().expect("runs")
    };
    until_blocking("a node that serves", || {
        run(&["kv", "put", "key", "value"]).status.success().then_some(())
    });
    for arguments in [&["job", "create", "j", "--tasks", "1"][..], &["snapshot", "save", "by-hand.snap"]] {
        let output = run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    }
    let has = |found: &BTreeMap<String, u32>, begin: &str, end: &str| {
        found.keys().any(|path| path.starts_with(begin) && path.ends_with(end))
    };
    let found = until_blocking("everything that is to be looked at", || {
        let found = written(place.path());
        let wanted =
            [("data/", ""), ("backups/", ".snap"), ("audit/", ""), ("client.sock", ""), ("by-hand", ".snap")];
        wanted.iter().all(|(begin, end)| has(&found, begin, end)).then_some(found)
    });
    let wide: Vec<_> = found.iter().filter(|(_, mode)| **mode & OTHERS != 0).collect();
    assert!(wide.is_empty(), "of {}, others may use: {wide:?}", found.len());
    assert!(found.len() > 10, "too little was looked at: {found:?}");
}
