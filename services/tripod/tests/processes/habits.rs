//! What people expect of a command line: that it asks before it destroys something, completes, has a manual, and is
//! silent when nobody reads on. The numbers behind `n` are those of the walk-through of a new operator.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use nix::pty::openpty;
use tripod_wait::until_blocking;

use crate::schemas;
use crate::support::{Dev, reserve_ports, stderr, tripod};

/// How a command ends whose reader has closed the pipe, and what it says about it.
fn unread(arguments: &[&str], endpoints: &str) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = tripod();
    command.args(arguments).env("TRIPOD_ENDPOINTS", endpoints).stdout(writer).stderr(Stdio::piped());
    let output = command.spawn().expect("starts").wait_with_output().expect("ends");
    (output.status.code(), stderr(&output))
}

/// What a command says and how it ends that is typed on a terminal, with what is typed then.
fn on_a_terminal(dev: &Dev, arguments: &[&str], answer: &str) -> (Option<i32>, String) {
    let terminal = openpty(None, None).expect("a terminal");
    let side = |file: &std::os::fd::OwnedFd| Stdio::from(file.try_clone().expect("duplicated"));
    let mut process = tripod()
        .args(arguments)
        .env("TRIPOD_ENDPOINTS", dev.endpoints(1))
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdin(side(&terminal.slave))
        .stderr(side(&terminal.slave))
        .stdout(Stdio::null())
        .spawn()
        .expect("starts");
    drop(terminal.slave);
    let mut keyboard = File::from(terminal.master.try_clone().expect("duplicated"));
    let mut screen = File::from(terminal.master);
    let mut told = Vec::new();
    let mut bytes = [0; 1024];
    let mut asked = false;
    // A terminal whose other side is closed gives an error at its end.
    while let Ok(count) = screen.read(&mut bytes) {
        if count == 0 {
            break;
        }
        told.extend_from_slice(&bytes[..count]);
        if !asked && String::from_utf8_lossy(&told).contains("to go on: ") {
            asked = true;
            keyboard.write_all(answer.as_bytes()).expect("typed");
        }
    }
    let status = until_blocking("the end of the command", || process.try_wait().expect("waited"));
    (status.code(), String::from_utf8_lossy(&told).into_owned())
}

#[test]
fn what_cannot_be_brought_back_is_destroyed_only_after_a_yes() {
    let root = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let dev = Dev::start(&ports, root.path(), &[]);
    dev.text(&["job", "create", "train", "--tasks", "1"]);
    let there = || dev.run(&["job", "show", "train"]).status.success();
    let refused = |arguments: &[&str], what: &str| {
        let output = dev.run(arguments);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        let sentence = format!("error: T1104 not-confirmed: this would {what}");
        assert!(told.starts_with(&sentence) && told.contains("; there is no terminal to ask on"), "{told}");
    };
    refused(&["job", "delete", "train"], "delete job `train`");
    refused(&["member", "remove", "3"], "remove node 3 for good");
    refused(&["member", "replace", "3", "127.0.0.1:1"], "replace node 3");
    refused(&["member", "demote", "3", "--force"], "change the members even if the cluster stands still");
    refused(&["recover", "d", "--save", "f", "--accept-loss"], "give up acknowledged writes");
    // Both that would be left have to answer soon, also below.
    let plans = || dev.run(&["member", "remove", "3", "--plan"]).status.success();
    until_blocking("a plan", || plans().then_some(()));
    let members = dev.json(&["member", "list", "--json"]);
    assert_eq!(members["votes"]["voters"].as_array().map(Vec::len), Some(3), "{members}");

    // n31: on a terminal what somebody should see has a colour.
    let (code, told) = on_a_terminal(&dev, &["job", "delete", "train"], "no\n");
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("\x1b[1;31merror:\x1b[0m T1104 not-confirmed: "), "{told}");
    assert!(told.contains("About to delete job `train` and everything in it.") && there(), "{told}");
    let (code, told) = on_a_terminal(&dev, &["job", "delete", "train"], "yes\n");
    assert!(code == Some(0) && !there(), "{told}");
    until_blocking("votes that are told first", || {
        let (code, told) = on_a_terminal(&dev, &["member", "remove", "3"], "\n");
        (code == Some(2) && told.contains("before  ") && told.contains("after   ")).then_some(())
    });
    // n27: nobody is asked about a job that is not there.
    let (code, told) = on_a_terminal(&dev, &["job", "delete", "train"], "yes\n");
    assert!(code == Some(1) && told.contains("T6101 job-unknown") && !told.contains("About to"), "{told}");
    dev.text(&["job", "create", "train", "--tasks", "1"]);
    for misspelt in
        [&["job", "show", "trian"][..], &["job", "note", "trian", "x"], &["job", "delete", "trian", "--yes"]]
    {
        let output = dev.run(misspelt);
        let near = "T6101 job-unknown: there is no job `trian`; did you mean `train`? see the jobs with ";
        let (code, told) = (output.status.code(), stderr(&output));
        assert!(code == Some(1) && told.contains(near), "{misspelt:?}: {told}");
    }
    dev.text(&["job", "delete", "train", "--yes"]);
    assert!(!there());

    // n18, of commands that ask a cluster.
    for arguments in [
        &["status"][..],
        &["status", "--json"],
        &["status", "--watch"],
        &["job", "list"],
        &["kv", "list"],
        &["member", "list"],
        &["level", "show"],
        &["bench", "kv", "--seconds", "0.1", "--clients", "1", "--keys", "1"],
    ] {
        let (code, told) = unread(arguments, &dev.endpoints(1));
        assert_eq!((code, told.contains("T1301")), (Some(141), false), "{arguments:?}: {told}");
    }

    // n23: `-` is standard input, as everywhere.
    let mut put = tripod()
        .args(["kv", "put", "dash", "-"])
        .env("TRIPOD_ENDPOINTS", dev.endpoints(1))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("starts");
    put.stdin.take().expect("piped").write_all(b"piped in").expect("written");
    assert!(put.wait().expect("ends").success());
    assert_eq!(dev.text(&["kv", "get", "dash"]), "piped in");
    dev.end();
}

#[test]
fn n18_a_closed_pipe_is_silent() {
    let root = tempfile::tempdir().expect("a directory");
    let pages = root.path().join("man").display().to_string();
    for arguments in [
        &["completion", "bash"][..],
        &["completion", "zsh"],
        &["completion", "fish"],
        &["explain"],
        &["explain", "T3101"],
        &["explain", "T3101", "--json"],
        &["--help"],
        &["server", "--help"],
        &["--version"],
        &["version"],
        &["config", "explain"],
        &["metrics", "list"],
        &["man", &pages],
    ] {
        assert_eq!(unread(arguments, "127.0.0.1:1"), (Some(141), String::new()), "{arguments:?}");
    }
}

#[test]
fn shells_take_the_completion_script_and_manual_pages_are_written() {
    let root = tempfile::tempdir().expect("a directory");
    let script = tripod().args(["completion", "bash"]).output().expect("runs");
    assert!(script.status.success());
    let file = root.path().join("tripod.bash");
    std::fs::write(&file, &script.stdout).expect("written");
    let checked = Command::new("bash").arg("-n").arg(&file).output().expect("bash runs");
    assert!(checked.status.success(), "{}", stderr(&checked));
    let completed = format!(
        "source {}; COMP_WORDS=(tripod sn); COMP_CWORD=1; _tripod tripod sn tripod; echo ${{COMPREPLY[*]}}",
        file.display()
    );
    let completed = Command::new("bash").args(["-c", &completed]).output().expect("bash runs");
    assert_eq!(String::from_utf8_lossy(&completed.stdout).trim(), "snapshot", "{}", stderr(&completed));

    let pages = root.path().join("man");
    let written = tripod().args(["man", "--json"]).arg(&pages).output().expect("runs");
    assert!(written.status.success(), "{}", stderr(&written));
    schemas::check("man", &serde_json::from_slice(&written.stdout).expect("JSON"));
    for name in [
        "tripod.1",
        "tripod-server.1",
        "tripod-snapshot-restore.1",
        "tripod-ray-tasks.1",
        "tripod-objstore.1",
    ] {
        let page = std::fs::read_to_string(pages.join(name)).expect("there");
        assert!(page.contains(".TH ") && page.len() > 500, "{name}: {page}");
    }
}
