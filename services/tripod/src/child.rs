//! A process of this same executable that ends with this one.

use std::ffi::OsStr;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

use crate::settings::{CONFIG, Settings, variable};

/// How long a process may take to end before it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a child's output goes.
pub(crate) struct Outputs {
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
}

/// A running child. Its standard input is a pipe from this process and carries nothing: when this process
/// ends, however it ends, the child sees the end of it (`--exit-with-parent`) and stops too.
#[derive(Debug)]
pub(crate) struct Child {
    process: tokio::process::Child,
    pid: u32,
    /// Kept out of `process`, which closes it as soon as somebody waits.
    _input: Option<ChildStdin>,
}

impl Child {
    /// Starts this same executable.
    pub(crate) fn start<A: AsRef<OsStr>>(arguments: &[A], outputs: Outputs) -> io::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?);
        // A child is told everything by its flags; a setting of its parent's environment is not meant for it.
        for key in Settings::new().keys().chain([CONFIG]) {
            process.env_remove(variable(key));
        }
        let mut process = process
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(outputs.stdout)
            .stderr(outputs.stderr)
            // Ctrl-C reaches a whole process group; the children are to end when we say so.
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

    /// What it prints and logs, where these were asked for as pipes.
    pub(crate) fn take_outputs(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.process.stdout.take(), self.process.stderr.take())
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
            tracing::warn!(pid = self.pid, "process did not end in time and is killed");
            if let Err(error) = self.process.kill().await {
                tracing::error!(pid = self.pid, %error, "process could not be killed");
            }
        }
    }
}

fn terminate(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("process ids are below 2^22 on Linux"));
    if let Err(error) = kill(pid, Signal::SIGTERM) {
        tracing::debug!(%pid, %error, "process could not be told to end");
    }
}
