//! jaxlib's own in-memory coordination service, as the peer of the barrier.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;

use tripod_processes::cluster::{NodeProcess, ReservedPorts};

const SCRIPT: &str = include_str!("serve_jaxlib.py");
/// Importing jaxlib reads a hundred megabytes.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks at the log.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// A running service. Dropping it ends it.
pub(super) struct JaxlibService {
    pub(super) address: String,
    pub(super) version: String,
    // Fields drop in this order: the port is given back when the process is gone.
    _process: NodeProcess,
    _directory: tempfile::TempDir,
    _port: ReservedPorts,
}

impl JaxlibService {
    /// Starts a service for a job of `tasks` tasks.
    pub(super) async fn start(python: &Path, tasks: usize) -> anyhow::Result<Self> {
        let port = ReservedPorts::reserve(1)?;
        let address = format!("127.0.0.1:{}", port.first());
        let directory = tempfile::tempdir().context("temporary directory")?;
        let mut command = Command::new(python);
        command.args(["-c", SCRIPT, &address, &tasks.to_string()]);
        // It would log every barrier, and the peer must not lose time by that.
        command.env("TF_CPP_MIN_LOG_LEVEL", "1");
        let mut process = NodeProcess::spawn("jaxlib's service", command, &directory.path().join("log"))?;
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            let log = process.log_tail();
            if let Some(version) = log.lines().find_map(|line| line.strip_prefix("serving ")) {
                let version = version.to_owned();
                return Ok(Self { address, version, _process: process, _directory: directory, _port: port });
            }
            anyhow::ensure!(
                process.is_running() && Instant::now() < deadline,
                "jaxlib's service does not start with {}:\n{log}",
                python.display()
            );
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }
}

/// An interpreter with jaxlib among those that the tests have set up beside the directory of this
/// program, the newest jaxlib first.
pub(super) fn find_python() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("where this program lies")?;
    let target = program.ancestors().nth(2).context("this program lies in no build directory")?;
    let entries = std::fs::read_dir(target.join("clients")).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path().join("bin/python")).filter(|python| python.exists()).collect();
    found.sort_by_key(|python| version_of(python));
    found.pop().context(
        "no Python with jaxlib in `clients` of the build directory: run `cargo xtask test` once, which sets it up, or give \
         --vs-jaxlib PYTHON",
    )
}

/// The numbers in the path of an environment, so that 0.12 comes after 0.9.
fn version_of(python: &Path) -> Vec<u64> {
    let text = python.to_string_lossy();
    text.split(|character: char| !character.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let old = version_of(Path::new("venv-0.9.2/bin/python"));
        let new = version_of(Path::new("venv-0.12.0.1/bin/python"));
        assert!(old < new);
    }
}
