//! Nodes that use TLS, with certificates that `tripod pki` makes. Each node has a loopback address of its own, so that a
//! certificate says at which host it is.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;
use tripod_processes::cluster::ReservedPorts;
use tripod_wait::{deadline, until_blocking};

use crate::support::{kill_by, seconds, send, stderr, tripod};

pub(crate) const NODES: [usize; 3] = [1, 2, 3];

/// Three nodes, the issuers of their cluster, and an operator.
pub(crate) struct Site<'a> {
    pub(crate) ports: &'a ReservedPorts,
    pub(crate) place: &'a Path,
    pub(crate) nodes: [Option<Child>; 3],
}

fn ok(command: &mut Command) -> Output {
    let output = command.output().expect("runs");
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    output
}

impl<'a> Site<'a> {
    /// Makes certificates. No node is started.
    pub(crate) fn new(ports: &'a ReservedPorts, place: &'a Path) -> Self {
        let site = Self { ports, place, nodes: [None, None, None] };
        site.pki(&["init", "ca", "--cluster", "prod"]);
        for node in NODES {
            site.certify(node, &format!("n{node}"));
        }
        site.pki(&["operator", "ann", "--ca", "ca", "--out", "ann"]);
        site.pki(&["init", "ca-of-others", "--cluster", "prod"]);
        site.pki(&["operator", "eve", "--ca", "ca-of-others", "--out", "eve"]);
        // One who believes our nodes, and has a certificate of somebody else's issuer.
        fs::copy(site.file("ann/ca.crt"), site.file("eve/ca.crt")).expect("copied");
        site
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.place.join(name)
    }

    pub(crate) fn pki(&self, arguments: &[&str]) {
        ok(tripod().arg("pki").args(arguments).current_dir(self.place));
    }

    /// Makes a certificate of a node, or makes it anew.
    pub(crate) fn certify(&self, node: usize, out: &str) {
        let (name, host) = (format!("n{node}"), Self::host(node));
        self.pki(&["node", &name, "--ca", "ca", "--host", &host, "--out", out]);
    }

    pub(crate) fn host(node: usize) -> String {
        format!("127.0.0.{node}")
    }

    pub(crate) fn address(&self, node: usize, offset: u16) -> String {
        format!("{}:{}", Self::host(node), self.ports.first() + offset)
    }

    pub(crate) fn log(&self, node: usize) -> String {
        fs::read_to_string(self.file(&format!("log-{node}"))).unwrap_or_default()
    }

    /// Starts a node with these flags, and the certificate of a directory.
    pub(crate) fn start(&mut self, node: usize, flags: &[&str]) {
        let initial = NODES.map(|node| format!("{node}={}", self.address(node, 100))).join(",");
        let jobs = self.ports.first() + 300;
        let log =
            File::options().append(true).create(true).open(self.file(&format!("log-{node}"))).expect("made");
        let child = tripod()
            .args(["server", "--node", &node.to_string(), "--initial", &initial, "--exit-with-parent"])
            .args(["--data", &format!("data-{node}"), "--job-ports", &format!("{jobs}-{}", jobs + 9)])
            .args(["--client", &self.address(node, 0), "--peer", &self.address(node, 100)])
            .args(["--http", &self.address(node, 200)])
            .args(flags)
            .current_dir(self.place)
            .stdin(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("starts");
        self.nodes[node - 1] = Some(child);
    }

    pub(crate) fn start_strict(&mut self) {
        for node in NODES {
            self.start(node, &["--tls-dir", &format!("n{node}")]);
        }
    }

    pub(crate) fn kill(&mut self, node: usize) {
        let mut child = self.nodes[node - 1].take().expect("it runs");
        kill_by(child.id());
        child.wait().expect("waited");
    }

    /// A command about the cluster, with the certificate of a directory or in plain text.
    pub(crate) fn run(&self, directory: Option<&str>, arguments: &[&str]) -> Output {
        let endpoints = NODES.map(|node| self.address(node, 0)).join(",");
        let mut command = tripod();
        command.args(arguments).env("TRIPOD_ENDPOINTS", endpoints).current_dir(self.place);
        if let Some(directory) = directory {
            command.env("TRIPOD_TLS_DIR", directory);
        }
        command.output().expect("runs")
    }

    /// Writes a key, as soon as that can be done, and reads it again.
    pub(crate) fn works(&self, directory: Option<&str>, value: &str) {
        until_blocking(format!("a write of {value}"), || {
            let put = self.run(directory, &["kv", "put", "key", value]);
            put.status.success().then_some(()).ok_or_else(|| stderr(&put)).ok()
        });
        let got = self.run(directory, &["kv", "get", "key"]);
        assert_eq!(String::from_utf8_lossy(&got.stdout).trim(), value, "{}", stderr(&got));
    }

    pub(crate) fn leader(&self) -> usize {
        until_blocking("a leader", || {
            let output = self.run(Some("ann"), &["member", "list", "-o", "json"]);
            let list: Value = serde_json::from_slice(&output.stdout).ok()?;
            usize::try_from(list["leader"].as_u64()?).ok()
        })
    }

    /// Has a node look for new files now.
    pub(crate) fn hang_up(&self, node: usize) {
        send(self.nodes[node - 1].as_ref().expect("it runs").id(), Signal::SIGHUP);
    }

    /// Has every node take what was written, and waits until each has taken something for the `times`th time.
    pub(crate) fn all_take(&self, times: usize) {
        for node in NODES {
            self.hang_up(node);
            until_blocking(format!("node {node} to take new files"), || {
                let log = self.log(node);
                (log.matches("new certificates taken").count() >= times).then_some(())
            });
        }
    }

    /// A write that must succeed with whatever the command line does by itself.
    pub(crate) fn writes(&self, directory: &str, value: &str) {
        let put = self.run(
            Some(directory),
            &["kv", "put", "key", value, "--timeout", &deadline().as_secs().to_string()],
        );
        assert!(put.status.success(), "{value}: {}", stderr(&put));
    }

    /// What refuses somebody's next call, in the words of the command line.
    pub(crate) fn refusal(&self, directory: &str) -> String {
        let output = self.run(Some(directory), &["kv", "get", "key", "--timeout", &seconds(2.0)]);
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        stderr(&output)
    }

    /// Waits until the log of a node says all of this in one line.
    pub(crate) fn says(&self, node: usize, words: &[&str]) {
        until_blocking(format!("node {node} to say {words:?}"), || {
            let log = self.log(node);
            let says = |line: &str| words.iter().all(|word| line.contains(word));
            log.lines().any(says).then_some(())
        });
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        for child in self.nodes.iter_mut().flatten() {
            kill_by(child.id());
            // There is nobody to tell when even this fails.
            let _ = child.wait();
        }
    }
}
