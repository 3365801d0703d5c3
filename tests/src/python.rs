//! A client script: a Python process that prints one JSON object per step.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tripod_processes::cluster::NodeProcess;

use crate::wait;

/// A running script. Dropping it kills it.
pub struct Script {
    name: String,
    process: NodeProcess,
    log: PathBuf,
}

impl Script {
    /// Starts `tests/clients/FILE` with its output in `FOLDER/NAME.log`.
    ///
    /// # Errors
    /// The interpreter cannot be started, or the log not be written.
    pub fn start<S: AsRef<str>>(
        python: &Path,
        file: &str,
        arguments: &[S],
        variables: &[(&str, &str)],
        folder: &Path,
        name: &str,
    ) -> Result<Self> {
        Self::start_by(Command::new(python), file, arguments, variables, folder, name)
    }

    /// The same with a command line that ends with the interpreter. What it starts must end when its standard
    /// input does: only the process of the command line itself is killed.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_by<S: AsRef<str>>(
        mut command: Command,
        file: &str,
        arguments: &[S],
        variables: &[(&str, &str)],
        folder: &Path,
        name: &str,
    ) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let log = folder.join(format!("{name}.log"));
        // Logs of an earlier run would be taken for steps of this one.
        fs::write(&log, "").with_context(|| format!("cannot write {}", log.display()))?;
        command.arg("-u").arg(scripts().join(file)).args(arguments.iter().map(AsRef::as_ref));
        command.env("JAX_PLATFORMS", "cpu").envs(variables.iter().copied());
        remember_bytecode(&mut command);
        // What a script waits for takes longer on a slow machine, too.
        command.env(tripod_wait::speed::VARIABLE, tripod_wait::speed::scale().to_string());
        let process = NodeProcess::spawn(name, command, &log)?;
        Ok(Self { name: name.to_owned(), process, log })
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The processes that it has started and that have not ended.
    ///
    /// # Errors
    /// It has ended, or the kernel does not tell (not Linux).
    pub fn children(&self) -> Result<Vec<u32>> {
        let threads = format!("/proc/{}/task", self.pid());
        let mut children = Vec::new();
        for thread in fs::read_dir(&threads).with_context(|| format!("cannot read {threads}"))? {
            // A thread may end while we look.
            let text = fs::read_to_string(thread?.path().join("children")).unwrap_or_default();
            children.extend(text.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        Ok(children)
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// Everything that it has written so far.
    #[must_use]
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// What it has written behind the first so many bytes, for those who look often.
    #[must_use]
    pub fn output_from(&self, start: u64) -> Vec<u8> {
        let read = || {
            let mut log = fs::File::open(&self.log)?;
            log.seek(SeekFrom::Start(start))?;
            let mut bytes = Vec::new();
            log.read_to_end(&mut bytes)?;
            std::io::Result::Ok(bytes)
        };
        read().unwrap_or_default()
    }

    /// Every step so far. Other programs' lines between them are left out.
    #[must_use]
    pub fn steps(&self) -> Vec<Value> {
        let output = self.output();
        let lines = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|value| value["step"].is_string()).collect()
    }

    /// Waits until a step fits.
    ///
    /// # Errors
    /// Not within `limit`, or the script ended before.
    pub async fn wait_for_step(
        &mut self,
        limit: Duration,
        mut fits: impl FnMut(&Value) -> bool,
    ) -> Result<Value> {
        let what = format!("a step of {}", self.name);
        wait::until(&what, limit, || {
            // Looked at first, or the last step before the end could be missed.
            let running = self.process.is_running();
            let found = self.steps().into_iter().find(|step| fits(step));
            if found.is_none() && !running {
                bail!("{} ended before the step that was waited for:\n{}", self.name, self.tail());
            }
            Ok(found)
        })
        .await
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It still runs after `limit`; it is then asked to end, so that it can end its own children.
    pub async fn finish(&mut self, limit: Duration) -> Result<Ending> {
        match self.process.wait(wait::scaled(limit)).await {
            Ok(status) => Ok(Ending::of(status)),
            Err(late) => {
                // Whatever comes of it, the wait has failed already.
                let _ = self.process.terminate(Duration::from_secs(5)).await;
                Err(late.context(format!("the end of its output:\n{}", self.tail())))
            }
        }
    }

    /// Waits for its end, which must be exit status 0.
    ///
    /// # Errors
    /// As [`Self::finish`], or another ending.
    pub async fn succeed(&mut self, limit: Duration) -> Result<()> {
        match self.finish(limit).await? {
            Ending::Exit(0) => Ok(()),
            other => bail!("{} ended with {other:?}:\n{}", self.name, self.tail()),
        }
    }

    /// SIGKILL.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill().map(|_| ())
    }

    fn tail(&self) -> String {
        let output = self.output();
        let lines: Vec<&str> = output.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

/// Has compiled modules kept beside the running program, in the build directory: compiling what jax or TensorFlow
/// imports takes three times as long as importing it, and the checkout stays clean.
fn remember_bytecode(command: &mut Command) {
    if let Ok(program) = std::env::current_exe() {
        command.env("PYTHONPYCACHEPREFIX", program.with_file_name("python-cache"));
        // Set where containers are made small, and stronger than the above.
        command.env_remove("PYTHONDONTWRITEBYTECODE");
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Exit(i32),
    Signal(i32),
}

impl Ending {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exit(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }
}

/// Where the client scripts lie.
#[must_use]
pub fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}
