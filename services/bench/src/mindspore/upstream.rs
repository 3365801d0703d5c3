//! MindSpore's own scheduler of the dynamic cluster, as the peer.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tripod_processes::cluster::{NodeProcess, ReservedPorts};

const SCRIPT: &str = include_str!("serve_mindspore.py");
/// Importing MindSpore reads hundreds of megabytes.
const START_PATIENCE: Duration = Duration::from_secs(180);
/// Pause between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

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
    /// Starts one for so many workers, and waits until it listens.
    pub(super) async fn start(python: &Path, workers: u32) -> anyhow::Result<Self> {
        let port = ReservedPorts::reserve(1)?;
        let address = format!("127.0.0.1:{}", port.first());
        let directory = tempfile::tempdir().context("temporary directory")?;
        let mut command = Command::new(python);
        command.args(["-c", SCRIPT]).current_dir(directory.path());
        command.envs([
            ("MS_ROLE", "MS_SCHED"),
            ("MS_SCHED_HOST", "127.0.0.1"),
            ("MS_SCHED_PORT", &port.first().to_string()),
            ("MS_WORKER_NUM", &workers.to_string()),
            ("MS_SERVER_NUM", "0"),
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
