//! The processes of the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tripod_tests::python::Script;

pub(crate) const TASKS: u16 = 3;
/// Interpreter start, compilation and registration of three processes on two cores.
const FIRST_STEP_LIMIT: Duration = Duration::from_secs(120);
/// One step with a fault in it.
const STEP_LIMIT: Duration = Duration::from_secs(60);
const END_LIMIT: Duration = Duration::from_secs(60);

/// What the other processes wait for, directed by process 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: nobody calls, and the poll for errors is all there is.
    Idle,
    Get,
    Barrier,
    /// The shutdown, which ends the program.
    Leave,
}

impl Wait {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Get => "get",
            Self::Barrier => "barrier",
            Self::Leave => "leave",
        }
    }
}

/// What the program repeats if it is cut together with its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Nothing: the process ends.
    None,
    /// Blocking gets.
    Gets,
    /// Every call.
    Calls,
}

impl Repeat {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gets => "gets",
            Self::Calls => "calls",
        }
    }
}

/// How the processes are started.
#[derive(Debug, Clone)]
pub(crate) struct Manners {
    pub(crate) heartbeat: Duration,
    pub(crate) repeat: Repeat,
    /// gRPC repeats calls, and increments of this release do not say whose they are: one whose answer was lost
    /// counts again.
    pub(crate) increments_unmarked: bool,
    /// The oldest protocol.
    pub(crate) legacy: bool,
    /// What is set in their environment.
    pub(crate) variables: Vec<(&'static str, String)>,
}

impl Default for Manners {
    fn default() -> Self {
        // Longer than an election, short enough to notice a mistake.
        let heartbeat = Duration::from_secs(20);
        Self {
            heartbeat,
            repeat: Repeat::None,
            increments_unmarked: false,
            legacy: false,
            variables: Vec::new(),
        }
    }
}

/// The running program.
pub(crate) struct Program {
    tasks: Vec<Script>,
    /// The directory of the files that direct it.
    control: PathBuf,
}

impl Program {
    /// Starts one process for each address, where it finds the coordination service.
    pub(crate) fn start(
        python: &Path,
        folder: &Path,
        manners: &Manners,
        addresses: &[String],
    ) -> Result<Self> {
        let control = folder.join("control");
        if control.exists() {
            fs::remove_dir_all(&control).with_context(|| format!("cannot empty {}", control.display()))?;
        }
        fs::create_dir_all(&control).with_context(|| format!("cannot make {}", control.display()))?;
        let directory = control.to_str().context("the folder is no text")?;
        let (count, heartbeat) = (addresses.len().to_string(), manners.heartbeat.as_secs().to_string());
        let variables: Vec<(&str, &str)> =
            manners.variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut tasks = Vec::new();
        for (task, address) in addresses.iter().enumerate() {
            let id = task.to_string();
            let mut arguments = vec!["--address", address, "-n", &count, "--id", &id];
            arguments.extend(["--control", directory, "--heartbeat-timeout", &heartbeat]);
            arguments.extend(["--repeat-cut", manners.repeat.name()]);
            if manners.increments_unmarked {
                arguments.push("--increments-unmarked");
            }
            if manners.legacy {
                arguments.push("--legacy");
            }
            let (file, name) = ("train_directed.py", format!("task-{task}"));
            tasks.push(Script::start(python, file, &arguments, &variables, folder, &name)?);
        }
        Ok(Self { tasks, control })
    }

    /// Waits until every process has done its first steps.
    pub(crate) async fn under_way(&mut self) -> Result<()> {
        self.reach(2, FIRST_STEP_LIMIT).await
    }

    /// Waits for two more steps of every process: one of them began after this call.
    pub(crate) async fn go_on(&mut self) -> Result<()> {
        let furthest = self.tasks.iter().filter_map(last_number).max().unwrap_or_default();
        self.reach(furthest + 2, STEP_LIMIT).await
    }

    /// Makes the other processes wait for process 0, until each of them is inside its call.
    pub(crate) async fn wait(&mut self, wait: Wait) -> Result<()> {
        self.direct("wait", wait)?;
        for task in &mut self.tasks {
            await_wait(task, wait).await?;
        }
        Ok(())
    }

    /// Makes the other processes leave and end, which nothing keeps them from, while process 0 stays.
    pub(crate) async fn others_leave(&mut self) -> Result<()> {
        self.direct("wait", Wait::Leave)?;
        let (first, others) = self.tasks.split_first_mut().context("a program without processes")?;
        await_wait(first, Wait::Leave).await?;
        for task in others {
            task.succeed(END_LIMIT).await?;
        }
        Ok(())
    }

    /// Lets process 0 end the wait.
    pub(crate) fn end_wait(&self, wait: Wait) -> Result<()> {
        self.direct("go", wait)
    }

    /// Lets the program end, if it was not told to before; every process must end with success.
    pub(crate) async fn finish(&mut self) -> Result<()> {
        self.direct("wait", Wait::Leave)?;
        self.end_wait(Wait::Leave)?;
        for task in &mut self.tasks {
            task.succeed(END_LIMIT).await?;
            let steps = task.steps();
            ensure!(steps.iter().any(|step| step["step"] == "end"), "a process did not report its end");
        }
        Ok(())
    }

    /// The processes that have not ended, by their place.
    pub(crate) fn running(&mut self) -> Vec<(usize, u32)> {
        let tasks = self.tasks.iter_mut().enumerate();
        tasks.filter_map(|(place, task)| task.is_running().then(|| (place, task.pid()))).collect()
    }

    /// How many steps each process has reported: a place to look from later.
    pub(crate) fn mark(&self) -> Vec<usize> {
        self.tasks.iter().map(|task| task.steps().len()).collect()
    }

    /// The longest call of any process that ended since the mark, in milliseconds.
    pub(crate) fn longest_ms_since(&self, mark: &[usize]) -> u64 {
        let since = self.tasks.iter().zip(mark).flat_map(|(task, seen)| task.steps().split_off(*seen));
        since.filter_map(|step| step["longest_ms"].as_u64()).max().unwrap_or_default()
    }

    /// How many calls of each process were cut so far, and repeated.
    pub(crate) fn cut_calls(&self) -> Vec<usize> {
        let cut = |task: &Script| task.steps().iter().filter(|step| step["step"] == "cut").count();
        self.tasks.iter().map(cut).collect()
    }

    /// What the first process said of itself when it was connected.
    pub(crate) fn introduction(&self) -> Result<Value> {
        let steps = self.tasks[0].steps();
        steps.into_iter().find(|step| step["step"] == "initialized").context("process 0 never was connected")
    }

    async fn reach(&mut self, number: u64, limit: Duration) -> Result<()> {
        for task in &mut self.tasks {
            task.wait_for_step(limit, |step| step["number"].as_u64().is_some_and(|at| at >= number)).await?;
        }
        Ok(())
    }

    fn direct(&self, word: &str, wait: Wait) -> Result<()> {
        let file = self.control.join(format!("{word}-{}", wait.name()));
        fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))
    }
}

async fn await_wait(task: &mut Script, wait: Wait) -> Result<()> {
    let fits = |step: &Value| step["step"] == "waiting" && step["kind"] == wait.name();
    task.wait_for_step(STEP_LIMIT, fits).await.map(|_| ())
}

fn last_number(task: &Script) -> Option<u64> {
    task.steps().iter().filter_map(|step| step["number"].as_u64()).max()
}
