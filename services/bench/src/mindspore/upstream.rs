//! MindSpore's own schedulers, as the peers.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tripod_processes::cluster::{NodeProcess, ReservedPorts};

const DYNAMIC: &str = include_str!("serve_mindspore.py");
const PARAMETER_SERVER: &str = include_str!("serve_parameter_server.py");
/// Importing MindSpore reads hundreds of megabytes.
const START_PATIENCE: Duration = Duration::from_secs(180);
/// Pause between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Of which cluster, and how many nodes it has.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scheduled {
    Dynamic { workers: u32 },
    ParameterServer { workers: u32, servers: u32 },
}

impl Scheduled {
    fn script(self) -> &'static str {
        match self {
            Self::Dynamic { .. } => DYNAMIC,
            Self::ParameterServer { .. } => PARAMETER_SERVER,
        }
    }

    fn nodes(self) -> (u32, u32) {
        match self {
            Self::Dynamic { workers } => (workers, 0),
            Self::ParameterServer { workers, servers } => (workers, servers),
        }
    }
}

/// A running scheduler. Dropping it ends it.
pub(super) struct Upstream {
    pub(super) version: String,
    address: String,
    // Fields drop in this order: the port is given back when the process is gone.
    _process: NodeProcess,
    _directory: tempfile::TempDir,
    _port: ReservedPorts,
}

impl Upstream {
    /// Starts one, and waits until it listens.
    pub(super) async fn start(python: &Path, scheduled: Scheduled) -> anyhow::Result<Self> {
        let (workers, servers) = scheduled.nodes();
        let port = ReservedPorts::reserve(1)?;
        let address = format!("127.0.0.1:{}", port.first());
        let directory = tempfile::tempdir().context("temporary directory")?;
        let mut command = Command::new(python);
        command.args(["-c", scheduled.script()]).current_dir(directory.path());
        command.envs([
            ("MS_ROLE", "MS_SCHED"),
            ("MS_SCHED_HOST", "127.0.0.1"),
            ("MS_SCHED_PORT", &port.first().to_string()),
            ("MS_WORKER_NUM", &workers.to_string()),
            ("MS_SERVER_NUM", &servers.to_string()),
            // It would log every registration, and must not lose time by that.
            ("GLOG_v", "3"),
        ]);
        let mut process =
            NodeProcess::spawn("MindSpore's scheduler", command, &directory.path().join("log"))?;
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            let log = process.log_tail();
            let version = log.lines().find_map(|line| line.strip_prefix("serving ")).map(str::to_owned);
            if let Some(version) = version
                && TcpStream::connect(&address).await.is_ok()
            {
                return Ok(Self { version, address, _process: process, _directory: directory, _port: port });
            }
            anyhow::ensure!(
                process.is_running() && Instant::now() < deadline,
                "MindSpore's scheduler does not start with {}:\n{log}",
                python.display()
            );
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }

    pub(super) fn addresses(&self) -> Arc<[String]> {
        [self.address.clone()].into()
    }
}
