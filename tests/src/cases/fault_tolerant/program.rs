//! The whole program: its processes, and a job.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tripod_client::Client;
use tripod_processes::cluster::find_tripod;
use tripod_tests::python::{Ending, Script};
use tripod_tests::{jobs, wait};

use super::history::{History, Moment, Numbers, Step, now};
use super::lists;
use super::process::Process;

/// A process begins, or the others go on. `tripod run` waits for up to half a minute before it begins a program again.
pub(super) const LIMIT: Duration = Duration::from_secs(120);
/// How long JAX itself tries to take part in a job.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);
/// More than there is time for: the program is told when to end.
const STEPS: &str = "1000000";
const EXAMPLE: &str = "../../examples/jax_fault_tolerant.py";
/// A job whose processes may come back, more often than any of these tests kills one.
pub(super) const MORTAL: &[&str] = &["--recoverable", "--restarts", "40"];

/// Begins the program when nobody who died is held any more: that the others go on without it is to be seen before it is back.
pub(super) const UNLESS_HELD: [&str; 3] =
    ["sh", "-c", r#"while [ -e "$HOLD" ]; do sleep 0.05; done; exec "$0" "$@""#];

/// What the processes are started with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup<'a> {
    pub(super) python: &'a Path,
    pub(super) folder: &'a Path,
    pub(super) endpoints: &'a [String],
    pub(super) job: &'a str,
    pub(super) tasks: usize,
    /// How long a step takes.
    pub(super) pause: Duration,
    /// How long JAX tries to take part in the job.
    pub(super) patience: Duration,
}

impl Setup<'_> {
    /// Starts a process below a `tripod run` with these flags, by a command line that ends with the interpreter.
    pub(super) fn start(&self, number: usize, flags: &[&str], by: &[&str]) -> Result<Process> {
        self.start_as(&format!("{}-process-{number}", self.job), number, flags, by)
    }

    /// The same with a name of its own for what it writes.
    pub(super) fn start_as(&self, name: &str, number: usize, flags: &[&str], by: &[&str]) -> Result<Process> {
        let mut run = Command::new(find_tripod()?);
        let (tasks, task) = (self.tasks.to_string(), number.to_string());
        run.args(["run", "--job", self.job, "--tasks", &tasks, "--task-id", &task]);
        run.args(["--cluster", &self.endpoints.join(","), "--heartbeat-timeout", "10"]).args(flags);
        run.arg("--").args(by).arg(self.python).env("HOLD", self.hold());
        let [pause, patience] = [self.pause.as_secs_f64(), self.patience.as_secs_f64().ceil()];
        let [pause, patience] = [pause, patience].map(|seconds| seconds.to_string());
        let arguments = ["--pause", &pause, "--steps", STEPS, "--initialization-timeout", &patience];
        let script = Script::start_by(run, EXAMPLE, &arguments, &[], self.folder, name)?;
        Ok(Process::of(number, script))
    }

    /// While this file is there nobody comes back.
    fn hold(&self) -> PathBuf {
        self.folder.join(format!("{}-hold", self.job))
    }
}

/// Its processes, in the order of their numbers.
pub(super) struct Program {
    pub(super) processes: Vec<Process>,
    job: String,
    hold: PathBuf,
    client: Client,
}

impl Program {
    /// Starts all processes, and waits until they have made a step together.
    pub(super) async fn start(setup: Setup<'_>) -> Result<Self> {
        let processes = (0..setup.tasks).map(|number| setup.start(number, MORTAL, &UNLESS_HELD));
        let processes = processes.collect::<Result<Vec<_>>>()?;
        let mut program = Self::of(setup, processes)?;
        program.go_on_together(0.0).await.context("at the beginning")?;
        Ok(program)
    }

    /// Of processes that were started.
    pub(super) fn of(setup: Setup<'_>, processes: Vec<Process>) -> Result<Self> {
        let (job, client) = (setup.job.to_owned(), jobs::client(setup.endpoints)?);
        Ok(Self { processes, job, hold: setup.hold(), client })
    }

    /// Kills them, as close together as one loop can, and holds them; when the first one was.
    pub(super) fn kill(&mut self, victims: &[usize]) -> Result<Moment> {
        fs::write(&self.hold, "").context("nobody can be held")?;
        let first = now()?;
        for victim in victims {
            self.processes[*victim].kill()?;
        }
        Ok(first)
    }

    /// Kills these: the others must go on without them, and then everybody together. After how many seconds the last of the
    /// others had made a step.
    pub(super) async fn lose(&mut self, victims: &[usize]) -> Result<f64> {
        let killed = self.kill(victims)?;
        let took = self.go_on(victims, killed).await?;
        self.go_on_together(killed).await?;
        Ok(took)
    }

    /// Waits until everybody but the victims has made a step after `since`, without the victims. After how many seconds the
    /// last of them had.
    pub(super) async fn go_on(&mut self, victims: &[usize], since: Moment) -> Result<f64> {
        let others = self.all_but(victims);
        let fits = |step: &Step| step.ended > since && step.live == others;
        Ok(self.wait_for_steps(&others, fits).await? - since)
    }

    /// Everybody but these.
    pub(super) fn all_but(&self, victims: &[usize]) -> Numbers {
        (0..self.processes.len()).filter(|number| !victims.contains(number)).collect()
    }

    /// Waits until each of these has made a step that fits; when the last of them had.
    pub(super) async fn wait_for_steps(
        &mut self,
        who: &Numbers,
        fits: impl Fn(&Step) -> bool,
    ) -> Result<Moment> {
        let mut last = 0.0_f64;
        for number in who {
            let process = &mut self.processes[*number];
            let what = format!("a step of process {number}");
            let ended = wait::until(&what, LIMIT, || {
                ensure!(process.script.is_running(), "process {number} ended");
                Ok(process.look()?.steps.iter().find(|step| fits(step)).map(|step| step.ended))
            });
            let ended = ended.await.with_context(|| self.tails())?;
            last = last.max(ended);
        }
        Ok(last)
    }

    /// Holds nobody any more, and waits until everybody who was killed has come back and everybody makes a step with everybody that began later than
    /// `since`.
    pub(super) async fn go_on_together(&mut self, since: Moment) -> Result<()> {
        if self.hold.exists() {
            fs::remove_file(&self.hold).context("they are held for ever")?;
        }
        for process in &mut self.processes {
            let what = format!("process {}, which has to come back", process.number);
            wait::until(&what, LIMIT, || Ok(process.is_back()?.then_some(())))
                .await
                .with_context(|| process.tail())?;
        }
        let all = self.all_but(&[]);
        self.wait_for_steps(&all, |step| step.asked > since && step.live == all).await?;
        Ok(())
    }

    /// Ends the program, and checks all that it did. How many steps were made, by each process.
    pub(super) async fn end(mut self) -> Result<usize> {
        let ending = now()?;
        for process in &self.processes {
            process.terminate()?;
        }
        for process in &mut self.processes {
            let ending = process.script.finish(LIMIT).await?;
            let number = process.number;
            ensure!(ending == Ending::Exit(0), "process {number} ended with {ending:?}:\n{}", process.tail());
            process.died_of_nothing_else()?;
        }
        self.client.jobs().delete(&self.job).await?;
        let histories: Vec<History> = self.processes.into_iter().map(|process| process.history).collect();
        lists::check(&histories, ending)
    }

    fn tails(&self) -> String {
        let tails = self.processes.iter().map(|process| {
            let tail = process.tail();
            let lines: Vec<&str> = tail.lines().collect();
            format!("--- process {}\n{}", process.number, lines[lines.len().saturating_sub(12)..].join("\n"))
        });
        tails.collect::<Vec<_>>().join("\n")
    }
}
