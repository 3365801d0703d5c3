//! Nodes that join: told to end before anybody answers, and removed before anything of the log has reached them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use serde_json::Value;
use tripod_processes::cluster::ReservedPorts;
use tripod_wait::until_blocking;

use crate::support::{end_by, kill_by, reserve_ports, stderr, tripod};

/// Where nobody listens: the nodes here listen on IPv4 only.
const UNREACHED: &str = "[::1]";

/// A cluster of one node, and others that want to join it.
struct Site<'a> {
    ports: &'a ReservedPorts,
    place: &'a Path,
    nodes: Vec<(Child, PathBuf)>,
}

impl<'a> Site<'a> {
    /// Starts the first node.
    fn start(ports: &'a ReservedPorts, place: &'a Path) -> Self {
        let mut site = Self { ports, place, nodes: Vec::new() };
        let peer = site.address(0, 100);
        site.server(
            0,
            &format!("first-{}", ports.first()),
            &["--node=1", &format!("--peer={peer}"), &format!("--initial=1={peer}")],
        );
        site.members_until("a leader", |list| list["leader"].is_u64().then_some(()));
        site
    }

    fn address(&self, slot: u16, offset: u16) -> String {
        format!("127.0.0.1:{}", self.ports.first() + offset + slot)
    }

    /// Starts a node in a slot; gives its place in `nodes`.
    fn server(&mut self, slot: u16, name: &str, flags: &[&str]) -> usize {
        let log = self.place.join(format!("{name}-{}.log", self.nodes.len()));
        let jobs = self.ports.first() + 300 + 50 * slot;
        let mut command = tripod();
        command.args(["server", "--data"]).arg(self.place.join(name));
        command.args([
            &format!("--client={}", self.address(slot, 0)),
            &format!("--http={}", self.address(slot, 200)),
            &format!("--job-ports={jobs}-{}", jobs + 49),
        ]);
        let child = command.args(flags).stderr(File::create(&log).expect("made")).spawn().expect("starts");
        self.nodes.push((child, log));
        self.nodes.len() - 1
    }

    /// Starts a node that the others cannot reach; gives its place in `nodes`.
    fn join(&mut self, slot: u16, name: &str, more: &[&str]) -> usize {
        let peer = format!("--peer=0.0.0.0:{}", self.ports.first() + 100 + slot);
        let advertise = format!("--advertise={UNREACHED}");
        let flags = [&[&peer[..], &advertise, "--insecure"], more].concat();
        self.server(slot, name, &flags)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        tripod().args(arguments).env("TRIPOD_ENDPOINTS", self.address(0, 0)).output().expect("runs")
    }

    /// Looks at `member list` until `look` finds something there.
    fn members_until<T>(&self, what: &str, look: impl Fn(&Value) -> Option<T>) -> T {
        until_blocking(what, || {
            let output = self.run(&["member", "list", "-o", "json"]);
            look(&serde_json::from_slice(&output.stdout).ok()?)
        })
    }

    /// The id of the member at the address of a slot, once there is one.
    fn id(&self, slot: u16) -> u64 {
        let peer = format!("{UNREACHED}:{}", self.ports.first() + 100 + slot);
        self.members_until("a member that joined", |list| {
            let members = list["members"].as_array()?;
            members.iter().find(|member| member["peer_address"] == *peer)?["id"].as_u64()
        })
    }

    fn remove(&self, node: u64) {
        let output = self.run(&["member", "remove", &node.to_string(), "--yes"]);
        assert!(output.status.success(), "{}", stderr(&output));
    }

    /// Waits until the node has ended by itself, and gives its last words.
    fn last_words(&mut self, node: usize) -> String {
        let (child, log) = &mut self.nodes[node];
        let status = until_blocking("the end of a removed node", || child.try_wait().expect("waited"));
        assert_eq!(
            status.code(),
            Some(0),
            "to be removed is no failure, which a service manager would repeat"
        );
        let log = std::fs::read_to_string(log).expect("a log");
        assert!(!log.contains("\nerror: "), "{log}");
        let last = log.lines().find(|line| line.contains("this node was removed: it ends"));
        let last = last.unwrap_or_else(|| panic!("it does not say why: {log}"));
        assert!(last.contains(" INFO ") && last.contains("code=T4201"), "{last}");
        last.to_owned()
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        for (child, _) in &mut self.nodes {
            if matches!(child.try_wait(), Ok(None)) {
                kill_by(child.id());
                // There is nobody to tell when even this fails.
                let _ = child.wait();
            }
        }
    }
}

fn assert_told(words: &str, node: u64) {
    let told = words.contains(&format!("T4201 node-removed: node {node} ")) && words.contains("--join");
    assert!(told, "{words}");
}

#[test]
fn n35_a_node_that_nothing_ever_reached_is_told_that_it_was_removed_and_ends_well() {
    let (ports, place) = (reserve_ports(), tempfile::tempdir().expect("a directory"));
    let mut site = Site::start(&ports, place.path());
    let join = format!("--join={}", site.address(0, 0));
    let running = site.join(1, "running", &[&join]);
    let first = site.id(1);
    site.remove(first);
    assert_told(&site.last_words(running), first);

    // The same while it is down; at its next start it needs no --join, as any node that was started before.
    let down = site.join(2, "down", &[&join]);
    let second = site.id(2);
    assert_ne!(first, second);
    until_blocking("an identity", || place.path().join("down").join("identity.json").exists().then_some(()));
    let (child, _) = &mut site.nodes[down];
    kill_by(child.id());
    child.wait().expect("waited");
    site.remove(second);
    let again = site.join(2, "down", &[]);
    assert_told(&site.last_words(again), second);
}

#[test]
fn a_node_that_waits_to_join_ends_when_it_is_told_to() {
    let (ports, place) = (reserve_ports(), tempfile::tempdir().expect("a directory"));
    let site = Site { ports: &ports, place: place.path(), nodes: Vec::new() };
    for (name, told) in [("parent", None), ("signal", Some(end_by as fn(u32)))] {
        let log = place.path().join(format!("{name}.log"));
        let mut command = tripod();
        command.args(["server", "--exit-with-parent", "--data"]).arg(place.path().join(name));
        command.args([("join", 9), ("client", 0), ("peer", 1), ("http", 2)].map(|(flag, port)| {
            // Nobody listens on the first of them.
            format!("--{flag}={}", site.address(port, 0))
        }));
        let log_file = File::create(&log).expect("made");
        let mut child = command.stdin(Stdio::piped()).stderr(log_file).spawn().expect("starts");
        let log = || std::fs::read_to_string(&log).expect("a log");
        until_blocking("a node that asks for its id", || log().contains("could not join yet").then_some(()));
        match told {
            Some(tell) => tell(child.id()),
            None => drop(child.stdin.take()),
        }
        let status = until_blocking("the end of a node", || child.try_wait().expect("waited"));
        assert!(status.success() && log().contains("ends before it has joined"), "{status}: {}", log());
    }
}
