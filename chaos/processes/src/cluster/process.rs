//! One process of ours, ended at the latest when its owner is dropped.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tokio::time::Instant;

/// Pause between two looks at a process that is to end.
const LOOK_PAUSE: Duration = Duration::from_millis(10);
/// The kernel's unit of processor time in `/proc`: USER_HZ, which is 100 on every architecture that Rust's
/// standard library runs on.
const TICK: Duration = Duration::from_millis(10);
/// Lines of a log that an error quotes.
const TAIL_LINES: usize = 12;

/// A child process with its log file. Dropping it kills it.
#[derive(Debug)]
pub struct NodeProcess {
    name: String,
    log: PathBuf,
    child: Child,
}

impl NodeProcess {
    /// Starts `command`; its output is appended to the file `log`. Its standard input is a pipe that
    /// ends when this process does, so a child that watches it never outlives us.
    ///
    /// # Errors
    /// The program cannot be started, or the log not be written.
    pub fn spawn(name: impl Into<String>, mut command: Command, log: &Path) -> anyhow::Result<Self> {
        let name = name.into();
        let output = open_log(log)?;
        let errors = output.try_clone().context("second handle on the log")?;
        let child = command
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot start {name}: {}", command.get_program().display()))?;
        Ok(Self { name, log: log.to_owned(), child })
    }

    /// What it is called in error texts.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process id. Valid until the process was seen to have ended.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process has not ended yet. A paused process runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// SIGKILL without waiting for the end; [`Self::kill`] or [`Self::wait`] must follow.
    pub fn send_kill(&mut self) {
        // An error here means that it has ended already, which the wait confirms.
        let _ = self.child.kill();
    }

    /// SIGKILL, and waits for the end.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub fn kill(&mut self) -> anyhow::Result<ExitStatus> {
        self.send_kill();
        self.child.wait().with_context(|| format!("cannot wait for {}", self.name))
    }

    /// SIGTERM, and waits for the end.
    ///
    /// # Errors
    /// The process still runs after `patience`; it is left alone then.
    pub async fn terminate(&mut self, patience: Duration) -> anyhow::Result<ExitStatus> {
        if self.is_running() {
            self.signal(Signal::SIGTERM)?;
        }
        self.wait(patience).await
    }

    /// Waits until the process ends by itself.
    ///
    /// # Errors
    /// It still runs after `patience`.
    pub async fn wait(&mut self, patience: Duration) -> anyhow::Result<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) =
                self.child.try_wait().with_context(|| format!("cannot wait for {}", self.name))?
            {
                return Ok(status);
            }
            anyhow::ensure!(Instant::now() < deadline, "{} still runs after {patience:?}", self.name);
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }

    /// SIGSTOP: the process keeps its connections and does nothing.
    ///
    /// # Errors
    /// The process has ended.
    pub fn pause(&self) -> anyhow::Result<()> {
        self.signal(Signal::SIGSTOP)?;
        // The signal is sent, but threads on other processors run on for a moment. WNOWAIT leaves the
        // status for whoever waits for the end.
        let stopped = WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(self.nix_pid()?), stopped) {
            Ok(WaitStatus::Stopped(..)) => Ok(()),
            Ok(_) => bail!("{} ended instead of pausing", self.name),
            Err(error) => Err(error).with_context(|| format!("cannot wait for {} to pause", self.name)),
        }
    }

    /// SIGCONT, after [`Self::pause`].
    ///
    /// # Errors
    /// The process has ended.
    pub fn resume(&self) -> anyhow::Result<()> {
        self.signal(Signal::SIGCONT)
    }

    /// Resident memory in bytes.
    ///
    /// # Errors
    /// The process has ended, or the kernel does not tell (not Linux).
    pub fn resident_bytes(&self) -> anyhow::Result<u64> {
        self.memory("VmRSS:")
    }

    /// The most resident memory that it has had since it started or since [`Self::forget_resident_max`], in bytes.
    ///
    /// # Errors
    /// The process has ended, or the kernel does not tell (not Linux).
    pub fn resident_max_bytes(&self) -> anyhow::Result<u64> {
        self.memory("VmHWM:")
    }

    /// Begins anew to look for the most resident memory.
    ///
    /// # Errors
    /// The process has ended, or the kernel cannot (not Linux).
    pub fn forget_resident_max(&self) -> anyhow::Result<()> {
        let path = format!("/proc/{}/clear_refs", self.pid());
        // The kernel's number for that and nothing else: proc_pid_clear_refs(5).
        std::fs::write(&path, "5").with_context(|| format!("cannot write {path}"))
    }

    /// Bytes that the process has caused to be written to disks so far, those in the system's memory included.
    ///
    /// # Errors
    /// The process has ended, or the kernel does not tell (not Linux).
    pub fn written_bytes(&self) -> anyhow::Result<u64> {
        let path = format!("/proc/{}/io", self.pid());
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let figure = text.lines().find_map(|line| line.strip_prefix("write_bytes:")?.trim().parse().ok());
        figure.with_context(|| format!("no bytes written in {path}"))
    }

    /// Processor time that all threads of the process have used so far, to 10 ms. Other load on the machine
    /// does not add to it.
    ///
    /// # Errors
    /// The process has ended, or the kernel does not tell (not Linux).
    pub fn cpu_time(&self) -> anyhow::Result<Duration> {
        cpu_time_in(&format!("/proc/{}/stat", self.pid()))
    }

    /// The same of this process.
    ///
    /// # Errors
    /// The kernel does not tell (not Linux).
    pub fn own_cpu_time() -> anyhow::Result<Duration> {
        cpu_time_in("/proc/self/stat")
    }

    /// The last lines of the log, for error texts.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    /// A figure of the kernel, in bytes.
    fn memory(&self, name: &str) -> anyhow::Result<u64> {
        let path = format!("/proc/{}/status", self.pid());
        let status = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        parse_kib(&status, name).map(|kib| kib * 1024).with_context(|| format!("no {name} in {path}"))
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        // The child has not been waited for, or try_wait would have said so: the id is still its own.
        kill(self.nix_pid()?, signal).with_context(|| format!("cannot send {signal} to {}", self.name))
    }

    fn nix_pid(&self) -> anyhow::Result<Pid> {
        i32::try_from(self.pid()).map(Pid::from_raw).context("process id out of range")
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        // Nothing can be done about a failure here, and nobody is left to be told.
        let _ = self.kill();
    }
}

fn open_log(path: &Path) -> anyhow::Result<File> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.with_context(|| format!("cannot open the log {}", path.display()))
}

fn parse_kib(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn cpu_time_in(path: &str) -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let ticks = parse_cpu_ticks(&stat).with_context(|| format!("no processor time in {path}"))?;
    Ok(TICK * ticks)
}

/// User and system time, fields 14 and 15 of proc(5). The name in field 2 may hold anything, blanks and
/// brackets too.
fn parse_cpu_ticks(stat: &str) -> Option<u32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut times = after_name.split_whitespace().skip(11).map(str::parse::<u32>);
    times.next()?.ok()?.checked_add(times.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use tripod_wait::{deadline, until};

    use super::*;

    fn shell(script: &str) -> (tempfile::TempDir, NodeProcess) {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let process = NodeProcess::spawn("test", command, &directory.path().join("log")).unwrap();
        (directory, process)
    }

    fn exists(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[tokio::test]
    async fn dropping_ends_the_process() {
        let (_directory, process) = shell("exec sleep 600");
        let pid = process.pid();
        assert!(exists(pid));
        drop(process);
        assert!(!exists(pid));
    }

    #[tokio::test]
    async fn a_child_that_watches_its_input_sees_us_end() {
        let (directory, mut process) = shell("cat; echo input ended");
        drop(process.child.stdin.take());
        assert!(process.wait(deadline()).await.unwrap().success());
        assert_eq!(std::fs::read_to_string(directory.path().join("log")).unwrap(), "input ended\n");
        assert_eq!(process.log_tail(), "input ended");
    }

    #[tokio::test]
    async fn terminate_reports_who_does_not_end() {
        let (_directory, mut process) = shell("trap '' TERM; echo ready; while true; do sleep 0.05; done");
        until("it to be ready", || (process.log_tail() == "ready").then_some(())).await;
        let refused = process.terminate(Duration::from_millis(200)).await.unwrap_err();
        assert!(refused.to_string().contains("still runs"), "{refused}");
        assert!(process.is_running());
        process.kill().unwrap();
        assert!(!process.is_running());
    }

    #[tokio::test]
    async fn a_paused_process_makes_no_progress_until_resumed() {
        let (_directory, mut process) = shell("exec cat");
        process.pause().unwrap();
        // It would end now.
        drop(process.child.stdin.take());
        assert!(process.wait(Duration::from_millis(400)).await.is_err());
        process.resume().unwrap();
        assert!(process.wait(deadline()).await.unwrap().success());
    }

    #[test]
    fn resident_memory_is_read_from_the_kernels_text() {
        let status = "Name:\tx\nVmHWM:\t    2464 kB\nVmRSS:\t    1232 kB\nThreads: 1\n";
        assert_eq!((parse_kib(status, "VmRSS:"), parse_kib(status, "VmHWM:")), (Some(1232), Some(2464)));
        assert_eq!(parse_kib("Name:\tx\n", "VmRSS:"), None);
    }

    #[test]
    fn processor_time_is_read_whatever_the_process_is_called() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 120 34 0 0 20 0 9";
        assert_eq!(parse_cpu_ticks(stat), Some(154));
        assert_eq!(parse_cpu_ticks("7 (a) S 1 2"), None);
    }
}
