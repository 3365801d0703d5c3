//! A cluster as `tripod dev` starts it: what a user has on a laptop.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tripod_processes::cluster::{NodeProcess, ReservedPorts, find_tripod};

use crate::wait;

/// How long three nodes may take to elect a leader on a busy machine.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// How long they may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(20);
/// Ports that `tripod dev` may use, from its `--port` on.
const SPAN: u16 = 600;

/// A running `tripod dev` with three nodes.
pub struct Dev {
    // Fields drop in this order: the ports are given back when the process is gone.
    process: NodeProcess,
    ports: ReservedPorts,
    nodes: Vec<u32>,
}

impl Dev {
    /// Starts it with its data and log in `folder` and waits until it says that it is ready.
    ///
    /// # Errors
    /// It ended, or was not ready in time; the text quotes what it wrote.
    pub async fn start(folder: &Path, arguments: &[&str]) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let log = folder.join("dev.log");
        fs::write(&log, "").with_context(|| format!("cannot write {}", log.display()))?;
        let ports = ReservedPorts::reserve(SPAN)?;
        let mut command = Command::new(find_tripod()?);
        command.args(["dev", "--json", "--port", &ports.first().to_string()]);
        command.arg("--data").arg(folder.join("data")).args(arguments);
        let mut process = NodeProcess::spawn("tripod dev", command, &log)?;
        let lines = wait::until("tripod dev", READY_LIMIT, || {
            let running = process.is_running();
            let lines = json_lines(&log);
            let ready = lines.iter().any(|line| line["ready"] == true);
            if !ready && !running {
                bail!("tripod dev ended: {}", process.log_tail());
            }
            Ok(ready.then_some(lines))
        })
        .await?;
        let nodes = lines.iter().filter_map(|line| u32::try_from(line["pid"].as_u64()?).ok()).collect();
        Ok(Self { process, ports, nodes })
    }

    /// Client addresses in the order of node ids.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        (0..3).map(|node| format!("127.0.0.1:{}", self.ports.first() + node)).collect()
    }

    /// Ends it by SIGTERM, which must end its nodes too.
    ///
    /// # Errors
    /// It did not end in time or not with success, or a node is left.
    pub async fn stop(mut self) -> Result<()> {
        let status = self.process.terminate(wait::scaled(STOP_LIMIT)).await?;
        if !status.success() {
            bail!("tripod dev ended with {status}: {}", self.process.log_tail());
        }
        let left = self.nodes.iter().filter(|pid| PathBuf::from(format!("/proc/{pid}")).exists());
        let left: Vec<_> = left.collect();
        anyhow::ensure!(left.is_empty(), "tripod dev left the processes {left:?}");
        Ok(())
    }
}

fn json_lines(log: &Path) -> Vec<Value> {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect()
}
