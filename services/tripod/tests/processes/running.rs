//! A `tripod run` whose program goes on.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use nix::sys::signal::Signal;
use tripod_wait::{deadline, until_blocking};

use crate::support::{Dev, kill_by, send, tripod};

/// A `tripod run` that is told where the cluster is.
pub(crate) fn run(dev: &Dev, flags: &[&str]) -> Command {
    let mut command = tripod();
    command.env("TRIPOD_ENDPOINTS", dev.endpoints(1)).arg("run").args(flags);
    command
}

/// The process, and what its program prints.
pub(crate) struct Running {
    pub(crate) process: Child,
    lines: mpsc::Receiver<String>,
}

impl Running {
    /// Starts a program of the shell with these flags of `run`.
    pub(crate) fn start(dev: &Dev, flags: &[&str], program: &str) -> Self {
        let mut process = run(dev, flags)
            .args(["--", "sh", "-c", program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // As where nobody sits at a terminal.
            .process_group(0)
            .spawn()
            .expect("starts");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { process, lines }
    }

    /// The next line that the program prints.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(deadline()).expect("the program goes on printing")
    }

    /// The agent that runs now.
    pub(crate) fn agent(&self) -> Option<u32> {
        let run = self.process.id();
        let children = std::fs::read_dir(format!("/proc/{run}/task")).ok()?.flatten().flat_map(|thread| {
            let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            children.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        });
        let is_agent = |pid: &String| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).nth(1) == Some(b"agent")
        };
        children.filter(is_agent).find_map(|pid| pid.parse().ok())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.process.id(), signal);
    }

    /// Waits for its end and tells the exit code.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        until_blocking("the end of run", || self.process.try_wait().expect("waited")).code()
    }

    /// What it has told besides, once it has ended.
    pub(crate) fn read_stderr(&mut self) -> String {
        let log = self.process.stderr.take().expect("piped");
        std::io::read_to_string(log).expect("readable")
    }
}

impl Drop for Running {
    /// A failed test must not leave it behind. Its program ends with its input.
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            kill_by(self.process.id());
            // There is nobody to tell when even this fails.
            let _ = self.process.wait();
        }
    }
}
