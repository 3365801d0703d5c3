//! What an operator does: gives commands, and starts nodes that join.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use tripod_processes::cluster::{Cluster, NodePorts, NodeProcess, PortBlock, complaint, find_tripod};
use tripod_wait::{deadline, until_async};

/// A terminal.
pub(crate) struct Operator {
    endpoints: String,
}

impl Operator {
    pub(crate) fn of(endpoints: &[String]) -> Self {
        Self { endpoints: endpoints.join(",") }
    }

    /// Runs `tripod member` with these arguments.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Output {
        self.run_any(&[&["member"], arguments].concat()).await
    }

    /// Runs `tripod` with these arguments.
    pub(crate) async fn run_any(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(find_tripod().unwrap());
        command.args(arguments).args(["--json", "--timeout", &deadline().as_secs().to_string()]);
        if ["remove", "replace"].iter().any(|lasting| arguments.get(1) == Some(lasting)) {
            command.arg("--yes");
        }
        command.args(["--endpoints", &self.endpoints]);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// The last line of a command that must succeed.
    pub(crate) async fn done(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments).await;
        assert!(output.status.success(), "{arguments:?}: {}", told(&output));
        serde_json::from_slice(output.stdout.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap())
            .unwrap()
    }

    /// Waits until the cluster is at the highest level that its nodes support, as it is a moment after its first start.
    pub(crate) async fn level_when_raised(&self) {
        until_async("the level to be raised", || async {
            let output = self.run_any(&["level", "show"]).await;
            let shown: Value = serde_json::from_slice(&output.stdout).ok()?;
            (shown["level"].as_u64() > Some(1) && shown["next"].is_null()).then_some(())
        })
        .await;
    }

    /// Asks for the list until it is what is waited for.
    pub(crate) async fn list_when(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        until_async(what, || async {
            let output = self.run(&["list"]).await;
            serde_json::from_slice(&output.stdout).ok().filter(&is_so)
        })
        .await
    }
}

pub(crate) fn told(output: &Output) -> String {
    complaint(&output.stderr)
}

/// Machines on which nodes that join are started.
pub(crate) struct Machines {
    ports: PortBlock,
    root: TempDir,
}

impl Machines {
    pub(crate) fn new() -> Self {
        Self { ports: PortBlock::reserve().unwrap(), root: tempfile::tempdir().unwrap() }
    }

    fn ports(&self, machine: u64) -> NodePorts {
        self.ports.node(machine).unwrap()
    }

    pub(crate) fn client(&self, machine: u64) -> String {
        format!("127.0.0.1:{}", self.ports(machine).client)
    }

    pub(crate) fn peer(&self, machine: u64) -> String {
        format!("127.0.0.1:{}", self.ports(machine).peer)
    }

    pub(crate) fn log(&self, machine: u64) -> PathBuf {
        self.root.path().join(format!("{machine}.log"))
    }

    /// Starts a node there that joins `cluster`, or goes on with what it has.
    pub(crate) fn join(&self, machine: u64, cluster: &Cluster) -> NodeProcess {
        let ports = self.ports(machine);
        let mut command = Command::new(find_tripod().unwrap());
        command
            .args(["server", "--exit-with-parent", "--join", &cluster.endpoints().join(",")])
            .arg("--data")
            .arg(self.root.path().join(format!("node-{machine}")))
            .args(["--client", &self.client(machine), "--peer", &self.peer(machine)])
            .args(["--http", &format!("127.0.0.1:{}", ports.http)])
            .args(["--job-ports", &format!("{}-{}", ports.jobs.0, ports.jobs.1)]);
        NodeProcess::spawn(format!("machine {machine}"), command, &self.log(machine)).unwrap()
    }
}
