//! One `tripod server` process that is started with whatever a test wants to be wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tripod_processes::cluster::{NodePorts, NodeProcess, find_tripod};

use crate::wait;

/// How long a start that must fail may take.
const REFUSAL_LIMIT: Duration = Duration::from_secs(20);

/// The flags of a node that is a cluster by itself.
#[derive(Debug, Clone)]
pub struct Flags {
    pub node: u64,
    pub data: PathBuf,
    pub ports: NodePorts,
    /// The peer port that the initial list names: the node's own, unless the node is to be another.
    pub initial: Vec<(u64, u16)>,
    /// A unix socket for clients.
    pub client_socket: Option<PathBuf>,
}

impl Flags {
    /// Node 1, alone.
    #[must_use]
    pub fn alone(data: &Path, ports: NodePorts) -> Self {
        Self { node: 1, data: data.to_owned(), ports, initial: vec![(1, ports.peer)], client_socket: None }
    }

    /// The client address.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.ports.client)
    }

    /// Starts the process with its output in `log`.
    ///
    /// # Errors
    /// There is no binary, or it cannot be started.
    pub fn start(&self, log: &Path) -> Result<NodeProcess> {
        let initial: Vec<String> =
            self.initial.iter().map(|(node, port)| format!("{node}=127.0.0.1:{port}")).collect();
        let mut command = Command::new(find_tripod()?);
        command.args(["server", "--node", &self.node.to_string(), "--data"]).arg(&self.data);
        command.args(["--client", &self.endpoint()]);
        command.args(["--peer", &format!("127.0.0.1:{}", self.ports.peer)]);
        command.args(["--http", &format!("127.0.0.1:{}", self.ports.http)]);
        command.args(["--job-ports", &format!("{}-{}", self.ports.jobs.0, self.ports.jobs.1)]);
        command.args(["--initial", &initial.join(",")]).arg("--exit-with-parent");
        if let Some(socket) = &self.client_socket {
            command.arg("--client-socket").arg(socket);
        }
        NodeProcess::spawn(format!("node {}", self.node), command, log)
    }

    /// Starts the process, which must end with exit status 1 and say why; gives what it said.
    ///
    /// # Errors
    /// It goes on running, or ends in another way, or says nothing.
    pub async fn refused(&self, log: &Path) -> Result<String> {
        fs::write(log, "").with_context(|| format!("cannot write {}", log.display()))?;
        let mut process = self.start(log)?;
        let status = process.wait(wait::scaled(REFUSAL_LIMIT)).await.context("a start that had to fail")?;
        let said = fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
        ensure!(status.code() == Some(1), "ended with {status} instead of exit status 1:\n{said}");
        ensure!(!said.contains("panicked"), "the process panicked:\n{said}");
        ensure!(!said.trim().is_empty(), "the process said nothing");
        Ok(said)
    }
}
