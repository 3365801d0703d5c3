//! A `tripod agent` process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::time::{Instant, sleep};
use tripod_wait::{deadline, scaled};

use super::options::find_tripod;
use super::process::NodeProcess;

/// How long it may take to stop, on a machine of usual speed: what it gives its clients' calls, and some more.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Pause between two looks at what it has written.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// A running `tripod agent`. Dropping it kills it.
pub struct Agent {
    binary: PathBuf,
    process: NodeProcess,
    place: String,
    flags: Vec<String>,
    log: PathBuf,
}

impl Agent {
    /// Starts an agent that listens at `place`, with its output in `log`, and waits until it does.
    /// `flags` are those besides `--listen`.
    ///
    /// # Errors
    /// It ended, or did not listen in time; the text quotes what it wrote.
    pub async fn start(place: &str, flags: Vec<String>, log: &Path) -> Result<Self> {
        Self::start_of(find_tripod()?, place, flags, log).await
    }

    /// [`Self::start`] of another build of ours.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_of(binary: PathBuf, place: &str, flags: Vec<String>, log: &Path) -> Result<Self> {
        fs::write(log, "").with_context(|| format!("cannot write {}", log.display()))?;
        let process = spawn(&binary, place, &flags, log)?;
        let mut agent = Self { binary, process, place: place.to_owned(), flags, log: log.to_owned() };
        agent.wait_until_it_listens(1).await?;
        Ok(agent)
    }

    /// Starts an agent that must end with exit status 1 and say why; gives what it said.
    ///
    /// # Errors
    /// It goes on running, or ends in another way.
    pub async fn refused(place: &str, flags: &[String], log: &Path) -> Result<String> {
        fs::write(log, "").with_context(|| format!("cannot write {}", log.display()))?;
        let mut process = spawn(&find_tripod()?, place, flags, log)?;
        let status = process.wait(deadline()).await.context("an agent that had to refuse to start")?;
        let said = fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
        ensure!(status.code() == Some(1), "ended with {status} instead of exit status 1:\n{said}");
        Ok(said)
    }

    /// Where clients find it, in their words.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Processor time that it has used so far.
    ///
    /// # Errors
    /// It has ended.
    pub fn cpu_time(&self) -> Result<Duration> {
        self.process.cpu_time()
    }

    /// Resident memory in bytes.
    ///
    /// # Errors
    /// It has ended.
    pub fn resident_bytes(&self) -> Result<u64> {
        self.process.resident_bytes()
    }

    /// Everything that it has written so far.
    #[must_use]
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// SIGTERM, and waits for the orderly end.
    ///
    /// # Errors
    /// It does not end in time.
    pub async fn terminate(&mut self) -> Result<ExitStatus> {
        self.process.terminate(scaled(STOP_LIMIT)).await
    }

    /// SIGKILL, and waits for the end.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill().map(|_| ())
    }

    /// Starts it again at the same place, after its end.
    ///
    /// # Errors
    /// It runs still, or as [`Self::start`].
    pub async fn restart(&mut self) -> Result<()> {
        ensure!(!self.process.is_running(), "the agent at {} is running", self.place);
        let starts = self.starts();
        self.process = spawn(&self.binary, &self.place, &self.flags, &self.log)?;
        self.wait_until_it_listens(starts + 1).await
    }

    /// Waits until it has said so `times` times.
    async fn wait_until_it_listens(&mut self, times: usize) -> Result<()> {
        let deadline = Instant::now() + deadline();
        loop {
            let running = self.process.is_running();
            if self.starts() >= times {
                return Ok(());
            }
            ensure!(running, "the agent at {} ended: {}", self.place, self.process.log_tail());
            ensure!(
                Instant::now() < deadline,
                "the agent at {} does not listen: {}",
                self.place,
                self.process.log_tail()
            );
            sleep(LOOK_PAUSE).await;
        }
    }

    fn starts(&self) -> usize {
        fs::read(&self.log).map_or(0, |log| String::from_utf8_lossy(&log).matches(" listens on ").count())
    }
}

fn spawn(binary: &Path, place: &str, flags: &[String], log: &Path) -> Result<NodeProcess> {
    let mut command = Command::new(binary);
    command.args(["agent", "--listen", place]).args(flags).arg("--exit-with-parent");
    NodeProcess::spawn(format!("agent at {place}"), command, log)
}
