//! One node's process.

use std::fs::OpenOptions;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child as Process, ChildStdin, Command};

use crate::dev::plan::NodePlan;
use crate::dev::{Config, Data};

/// How long a node may take to end before it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// A running node. Its standard input is a pipe from this process and carries nothing: when this process
/// ends, however it ends, the node sees the end of it and stops too.
#[derive(Debug)]
pub(crate) struct Child {
    process: Process,
    pid: u32,
    /// Kept out of `process`, which closes it as soon as somebody waits.
    _input: Option<ChildStdin>,
}

impl Child {
    /// Starts a node of this same executable.
    pub(crate) fn start(config: &Config, data: &Data, node: &NodePlan) -> io::Result<Self> {
        let log = if config.verbose {
            Stdio::inherit()
        } else {
            OpenOptions::new().create(true).append(true).open(data.log(node.id))?.into()
        };
        let mut process = Command::new(std::env::current_exe()?)
            .args(arguments(config, data, node))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            // Ctrl-C reaches a whole process group; the nodes are to end when we say so.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let pid = process.id().expect("a process that was not waited for has an id");
        let input = process.stdin.take();
        Ok(Self { process, pid, _input: input })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until the process ends by itself.
    pub(crate) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// Ends the process, gently at first.
    pub(crate) async fn end(mut self) {
        // A process that has ended is not waited for yet, so the id cannot be another process's.
        if let Some(pid) = self.process.id() {
            terminate(pid);
        }
        if tokio::time::timeout(END_TIMEOUT, self.process.wait()).await.is_err() {
            tracing::warn!(pid = self.pid, "node did not end in time and is killed");
            if let Err(error) = self.process.kill().await {
                tracing::error!(pid = self.pid, %error, "node could not be killed");
            }
        }
    }
}

fn terminate(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("process ids are below 2^22 on Linux"));
    if let Err(error) = kill(pid, Signal::SIGTERM) {
        tracing::debug!(%pid, %error, "node could not be told to end");
    }
}

fn arguments(config: &Config, data: &Data, node: &NodePlan) -> Vec<String> {
    let mut arguments = vec![
        "server".to_owned(),
        "--exit-with-parent".to_owned(),
        format!("--node={}", node.id),
        format!("--data={}", data.node(node.id).display()),
        format!("--client={}", node.client),
        format!("--peer={}", node.peer),
        format!("--http={}", node.http),
        format!("--initial={}", config.plan.initial().to_flag()),
        format!("--cluster-id={}", data.cluster_id()),
        format!("--job-ports={}", node.job_ports),
    ];
    arguments.extend(config.tasks.map(|tasks| format!("--tasks={tasks}")));
    arguments.extend(config.job.to_flags());
    arguments
}
