//! Clusters of real processes for the tests of this crate: started on free ports, ended by process id.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tripod_processes::cluster::ReservedPorts;
use tripod_wait::{deadline, scaled, until_blocking};

/// Ports of one cluster of three nodes, from its first client port on.
const PORTS: u16 = 600;

/// The binary under test.
pub(crate) fn tripod() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tripod"));
    // Whatever somebody has set for clusters and tests of his own.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TRIPOD_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// A limit for a command that is to be answered within it: so many seconds on a machine of usual speed.
pub(crate) fn seconds(usually: f64) -> String {
    scaled(Duration::from_secs_f64(usually)).as_secs_f64().to_string()
}

/// Ports for one cluster, which nobody else is given until the value goes.
pub(crate) fn reserve_ports() -> ReservedPorts {
    ReservedPorts::reserve(PORTS).expect("free ports")
}

/// A `tripod dev` and what it printed.
pub(crate) struct Dev {
    process: Child,
    lines: mpsc::Receiver<Value>,
    pub(crate) port: u16,
    /// Process ids by node, from node 1 on.
    pub(crate) nodes: Vec<u32>,
    pub(crate) leader: u64,
}

impl Dev {
    /// Starts three nodes and waits until they are ready.
    pub(crate) fn start(ports: &ReservedPorts, data: &Path, flags: &[&str]) -> Self {
        Self::start_with(ports, data, flags, &[])
    }

    /// The same with these environment variables.
    pub(crate) fn start_with(
        ports: &ReservedPorts,
        data: &Path,
        flags: &[&str],
        variables: &[(&str, String)],
    ) -> Self {
        let port = ports.first();
        let mut process = tripod()
            .args(["dev", "--json", "--port", &port.to_string(), "--data"])
            .arg(data)
            .args(flags)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("dev starts");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("dev prints JSON only");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut dev = Self { process, lines, port, nodes: Vec::new(), leader: 0 };
        loop {
            let line = dev.line();
            if line["ready"] == true {
                dev.leader = line["leader"].as_u64().expect("a leader");
                return dev;
            }
            dev.nodes.push(pid(&line));
        }
    }

    /// The next line that dev prints.
    pub(crate) fn line(&self) -> Value {
        self.lines.recv_timeout(deadline()).expect("dev goes on printing")
    }

    /// Client addresses, the given node's first.
    pub(crate) fn endpoints(&self, first: u16) -> String {
        let address = |place: u16| format!("127.0.0.1:{}", self.port + (first - 1 + place) % 3);
        (0..3).map(address).collect::<Vec<_>>().join(",")
    }

    /// Runs a command against this cluster.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let output = tripod().args(arguments).env("TRIPOD_ENDPOINTS", self.endpoints(1)).output();
        output.expect("the command runs")
    }

    /// What a command prints that must succeed, however long that takes.
    pub(crate) fn text(&self, arguments: &[&str]) -> String {
        let patience = deadline().as_secs().to_string();
        let output = self.run(&[&["--timeout", &patience], arguments].concat());
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// The JSON that a command prints that must succeed.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(arguments)).expect("JSON")
    }

    /// What `status` tells, for programs; it ends with 3 as long as nobody leads, and tells all the same.
    pub(crate) fn status(&self) -> Value {
        let output = self.run(&["status", "--json"]);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// What `status` shows to people once somebody leads.
    pub(crate) fn status_of_a_led_cluster(&self) -> String {
        let output = until_blocking("a leader", || {
            Some(self.run(&["status"])).filter(|output| output.status.success())
        });
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// The leader that the nodes know now.
    pub(crate) fn current_leader(&self) -> u64 {
        until_blocking("a leader", || self.status()["leader"].as_u64())
    }

    /// Kills a node, without giving it time for anything.
    pub(crate) fn kill(&self, node: u64) {
        let place = usize::try_from(node - 1).expect("a small id");
        kill_by(self.nodes[place]);
    }

    /// Kills the node that leads now, without giving it time for anything. Nodes may have been started again.
    pub(crate) fn kill_leader(&mut self) {
        until_blocking("a leader that runs", || {
            for line in self.lines.try_iter() {
                let node = line["node"].as_u64().and_then(|node| usize::try_from(node).ok())?;
                self.nodes[node - 1] = pid(&line);
            }
            // Some node may still tell of a leader that was killed a moment ago.
            let place = usize::try_from(self.current_leader() - 1).expect("a small id");
            let process = Pid::from_raw(i32::try_from(self.nodes[place]).expect("a process id"));
            kill(process, Signal::SIGKILL).is_ok().then_some(())
        });
    }

    /// Kills dev itself; its nodes must notice.
    pub(crate) fn kill_parent(mut self) -> Vec<u32> {
        kill_by(self.process.id());
        self.process.wait().expect("waited");
        self.nodes.clone()
    }

    /// Ends the cluster as a user does, and checks that dev ends well and leaves nobody behind.
    pub(crate) fn end(self) {
        end_by(self.process.id());
        self.ended();
    }

    /// The same by the end of its input.
    pub(crate) fn end_with_input(mut self) {
        drop(self.process.stdin.take());
        self.ended();
    }

    fn ended(mut self) {
        let status = until_blocking("the end of dev", || self.process.try_wait().expect("waited"));
        assert!(status.success(), "dev ended with {status}");
        for pid in &self.nodes {
            assert!(!is_alive(*pid), "process {pid} is still there");
        }
    }
}

impl Drop for Dev {
    /// A failed test must not leave processes behind either: the nodes end with their parent.
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            kill_by(self.process.id());
            // There is nobody to tell when even this fails.
            let _ = self.process.wait();
        }
    }
}

/// The process id in a line of dev.
pub(crate) fn pid(line: &Value) -> u32 {
    line["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a process id")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether a process that is not our child runs. A zombie of somebody else's counts as ended.
pub(crate) fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
}

/// Kills a process, without giving it time for anything.
pub(crate) fn kill_by(pid: u32) {
    send(pid, Signal::SIGKILL);
}

/// Asks a process to end.
pub(crate) fn end_by(pid: u32) {
    send(pid, Signal::SIGTERM);
}

pub(crate) fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a process id"));
    kill(pid, signal).expect("the process is there");
}
