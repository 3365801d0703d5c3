//! What happened, as commands show it: a follower misses nothing while leaders are killed, and what is kept of a job outlives
//! it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::mpsc;

use serde_json::Value;
use tripod_wait::{deadline, until_blocking};

use crate::support::{Dev, reserve_ports, stderr, tripod};

/// A command that follows a job, and the lines that it printed.
struct Following {
    process: Child,
    lines: mpsc::Receiver<Value>,
}

impl Following {
    fn start(dev: &Dev, job: &str, first: u16) -> Self {
        let mut process = tripod()
            .args(["job", "events", job, "--follow", "-o", "json"])
            .env("TRIPOD_ENDPOINTS", dev.endpoints(first))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(serde_json::from_str(&line).expect("JSON")).is_err() {
                    return;
                }
            }
        });
        Self { process, lines }
    }

    fn line(&self) -> Value {
        self.lines.recv_timeout(deadline()).expect("it goes on printing")
    }

    /// Everything up to its end, which comes by itself.
    fn ends(mut self, mut told: Vec<Value>) -> Vec<Value> {
        let status =
            until_blocking("the follower's end", || self.process.try_wait().expect("it is our child"));
        let mut text = String::new();
        self.process.stderr.take().expect("piped").read_to_string(&mut text).expect("text");
        assert!(status.success(), "{status}: {text}");
        told.extend(self.lines.iter());
        told
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Events need a feature level that a new cluster is at a moment after its start.
fn wait_until_told(dev: &Dev) {
    until_blocking("events to be told", || {
        dev.run(&["job", "events", "default"]).status.success().then_some(())
    });
}

fn key(event: &Value) -> (u64, u64, String, String) {
    let number = |name: &str| event[name].as_u64().unwrap_or_else(|| panic!("{name} in {event}"));
    let word = |name: &str| event[name].as_str().expect("a word").to_owned();
    (number("number"), number("index"), word("kind"), word("text"))
}

#[test]
fn v19_a_follower_hears_of_everything_once_while_leaders_and_its_own_node_are_killed() {
    let ports = reserve_ports();
    let data = tempfile::tempdir().expect("a directory");
    let mut dev = Dev::start(&ports, data.path(), &["--restart"]);
    wait_until_told(&dev);
    dev.text(&["job", "create", "followed", "--tasks", "2"]);
    dev.text(&["job", "note", "followed", "before"]);
    let following = Following::start(&dev, "followed", 2);
    let mut told = Vec::new();
    let mut hear = |following: &Following, text: &str| loop {
        let line = following.line();
        let is_it = line["text"] == text;
        told.push(line);
        if is_it {
            return;
        }
    };
    hear(&following, "before");
    for round in 0..5 {
        dev.text(&["job", "note", "followed", &format!("first of {round}")]);
        dev.kill_leader();
        dev.text(&["job", "note", "followed", &format!("second of {round}")]);
        hear(&following, &format!("second of {round}"));
    }
    let listed = dev.json(&["job", "events", "followed", "-o", "json"]);
    dev.text(&["job", "delete", "followed", "--yes"]);
    let told = following.ends(told);
    let told: Vec<_> = told.iter().map(key).collect();
    let listed: Vec<_> = listed["events"].as_array().expect("events").iter().map(key).collect();
    assert_eq!(told[..listed.len()], listed, "no gap and no repeat");
    assert_eq!(told.len(), listed.len() + 1);
    assert_eq!(told.last().map(|(_, _, kind, _)| kind.as_str()), Some("job-deleted"));

    // Its milestones outlive it, notes do not, and elections are the cluster's.
    let gone = dev.json(&["job", "events", "followed", "-o", "json"]);
    let milestones = told.iter().filter(|(_, _, kind, _)| kind != "job-noted").count();
    assert_eq!((&gone["ended"], gone["events"].as_array().map(Vec::len)), (&true.into(), Some(milestones)));
    let shown = dev.text(&["events", "--since", "1h"]);
    for word in ["kept since ", "job-deleted", "term-changed", "followed"] {
        assert!(shown.contains(word), "{word} is not in\n{shown}");
    }
    let file = data.path().join("trace.json");
    dev.text(&["job", "events", "followed", "--export", file.to_str().expect("a path")]);
    let trace: Value = serde_json::from_slice(&std::fs::read(&file).expect("the file")).expect("JSON");
    assert!(trace["traceEvents"].as_array().is_some_and(|entries| entries.len() > milestones));
    let unknown = dev.run(&["job", "events", "never"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("T7301 events-unknown: "), "{}", stderr(&unknown));
}

#[test]
fn without_a_leader_one_node_says_what_it_remembers_and_that_it_may_be_old() {
    let ports = reserve_ports();
    let data = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(&ports, data.path(), &[]);
    wait_until_told(&dev);
    dev.text(&["job", "create", "remembered", "--tasks", "2"]);
    // Every node has heard of it.
    let asked = |node: u16, arguments: &[&str]| {
        let output = tripod().args(arguments).env("TRIPOD_ENDPOINTS", dev.endpoints(node)).output();
        output.expect("the command runs")
    };
    let output = asked(3, &["job", "events", "remembered"]);
    assert!(output.status.success(), "{}", stderr(&output));
    dev.kill(1);
    dev.kill(2);
    let output = until_blocking("an answer from memory", || {
        let output = asked(3, &["job", "events", "remembered"]);
        (output.status.code() == Some(3) && !output.stdout.is_empty()).then_some(output)
    });
    let shown = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    assert!(shown.contains("from memory as of") && shown.contains("job-created"), "{shown}");
    assert!(stderr(&output).contains("T2104 no-leader"), "{}", stderr(&output));
}
