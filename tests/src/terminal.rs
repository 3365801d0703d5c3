//! Commands as an operator types them.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tokio::process::Command;
use tripod_processes::cluster::{complaint, find_tripod};

use crate::wait::scaled;

/// How long a command may take, in seconds, as it is told.
const TIMEOUT_S: &str = "60";
/// Pause before a command is given again.
const AGAIN_PAUSE: Duration = Duration::from_millis(100);

/// A terminal whose environment names the nodes of a cluster, and who sits there.
pub struct Terminal {
    endpoints: String,
    user: String,
}

impl Terminal {
    /// One that knows the nodes at these client addresses.
    #[must_use]
    pub fn new(endpoints: &[String], user: &str) -> Self {
        Self { endpoints: endpoints.join(","), user: user.to_owned() }
    }

    /// Who sits there.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Types `tripod ARGUMENTS`, which must succeed; every line that it prints, as JSON.
    ///
    /// # Errors
    /// It does not succeed; the text quotes what it said.
    pub async fn done(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        match self.enter(arguments).await? {
            Ok(lines) => Ok(lines),
            Err(complaint) => bail!("tripod {}: {complaint}", arguments.join(" ")),
        }
    }

    /// Types a command that must be refused with exit status 1; what it said.
    ///
    /// # Errors
    /// It succeeds, or ends in another way.
    pub async fn refused(&self, arguments: &[&str]) -> Result<String> {
        let what = arguments.join(" ");
        match self.enter(arguments).await? {
            Ok(lines) => bail!("tripod {what} was not refused: {lines:?}"),
            Err(complaint) if complaint.starts_with("exit status: 1: ") => Ok(complaint),
            Err(complaint) => bail!("tripod {what} was refused in another way: {complaint}"),
        }
    }

    /// Types a command as [`Self::done`] does, again and again while it is refused with one of `codes`, which is said to pass.
    ///
    /// # Errors
    /// It is refused for another reason, or still after `limit`.
    pub async fn done_within(
        &self,
        limit: Duration,
        arguments: &[&str],
        codes: &[&str],
    ) -> Result<Vec<Value>> {
        let (begin, limit) = (Instant::now(), scaled(limit));
        loop {
            match self.enter(arguments).await? {
                Ok(lines) => return Ok(lines),
                Err(complaint) if codes.iter().any(|code| complaint.contains(code)) => {
                    let what = arguments.join(" ");
                    anyhow::ensure!(
                        begin.elapsed() < limit,
                        "tripod {what}: within {limit:?} always: {complaint}"
                    );
                }
                Err(complaint) => bail!("tripod {}: {complaint}", arguments.join(" ")),
            }
            tokio::time::sleep(AGAIN_PAUSE).await;
        }
    }

    /// Types a command that shows something, until it shows what is waited for.
    ///
    /// # Errors
    /// It fails, or shows something else still after `limit`.
    pub async fn shows_within(
        &self,
        limit: Duration,
        arguments: &[&str],
        is_so: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let (begin, limit) = (Instant::now(), scaled(limit));
        loop {
            let shown = self.done(arguments).await?.pop().context("it shows nothing")?;
            if is_so(&shown) {
                return Ok(shown);
            }
            let what = arguments.join(" ");
            anyhow::ensure!(begin.elapsed() < limit, "tripod {what}: after {limit:?} still {shown}");
            tokio::time::sleep(AGAIN_PAUSE).await;
        }
    }

    /// What it printed, or why it did not succeed.
    async fn enter(&self, arguments: &[&str]) -> Result<Result<Vec<Value>, String>> {
        let mut command = Command::new(find_tripod()?);
        command.args(arguments).args(["-o", "json", "--timeout", TIMEOUT_S]).kill_on_drop(true);
        command.env("TRIPOD_ENDPOINTS", &self.endpoints).env("USER", &self.user);
        command.stdin(std::process::Stdio::null());
        let output = command.output().await.context("cannot start tripod")?;
        if !output.status.success() {
            let complaint = complaint(&output.stderr);
            return Ok(Err(format!("{}: {}", output.status, complaint.trim())));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        let lines: Result<Vec<Value>, _> = said.lines().map(serde_json::from_str).collect();
        Ok(Ok(lines.with_context(|| format!("tripod {} said {said}", arguments.join(" ")))?))
    }
}
