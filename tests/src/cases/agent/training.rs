//! The processes of the program, each with an agent of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tripod_chaos::cluster::Agent;
use tripod_chaos::cluster::ReservedPorts;
use tripod_tests::python::Script;

pub(super) const TASKS: u16 = 3;
/// The task whose agent listens on a unix socket; those of the others on loopback.
const TASK_ON_SOCKET: u16 = 1;
/// Interpreter start, compilation and registration of three processes on two cores.
const FIRST_STEP_LIMIT: Duration = Duration::from_secs(120);
/// One step with a fault in it.
const STEP_LIMIT: Duration = Duration::from_secs(60);
const END_LIMIT: Duration = Duration::from_secs(60);

/// How the program and its agents are started.
#[derive(Debug, Clone)]
pub(super) struct Manners {
    /// The client addresses that agents are told, in the order of preference.
    pub(super) cluster: Vec<String>,
    pub(super) heartbeat: Duration,
    /// The oldest protocol.
    pub(super) legacy: bool,
    /// Agents leave polls to the job, which releases them; then clients survive an agent's death, and only
    /// gets that are cut by it are repeated.
    pub(super) release_polls: bool,
    /// Calls wait while the agent is away (`GRPC_FAIL_FAST=false`).
    pub(super) wait_for_agents: bool,
}

impl Manners {
    /// Agents that know these nodes; the rest as most cases want it.
    pub(super) fn of(cluster: Vec<String>) -> Self {
        let heartbeat = Duration::from_secs(20);
        Self { cluster, heartbeat, legacy: false, release_polls: false, wait_for_agents: false }
    }

    /// What agents are told. The first of them creates the job.
    fn agent_flags(&self) -> Vec<String> {
        let cluster = self.cluster.join(",");
        let (tasks, heartbeat) = (TASKS.to_string(), self.heartbeat.as_secs().to_string());
        let poll = if self.release_polls { "release" } else { "hold" };
        let flags = ["--cluster", &cluster, "--job", "train", "--tasks", &tasks, "--poll", poll];
        let flags = flags.into_iter().chain(["--heartbeat-timeout", &heartbeat]);
        flags.map(str::to_owned).collect()
    }

    fn script_flags(&self) -> Vec<String> {
        let heartbeat = self.heartbeat.as_secs().to_string();
        let mut flags = vec!["--heartbeat-timeout".to_owned(), heartbeat];
        if self.release_polls {
            flags.push("--repeat-cut-gets".to_owned());
        }
        if self.legacy {
            flags.push("--legacy".to_owned());
        }
        flags
    }
}

/// What the other processes wait for, directed by process 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nothing: nobody calls, and the poll for errors is all there is.
    Idle,
    Get,
    Barrier,
    /// The shutdown, which ends the program.
    Leave,
}

impl Wait {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Get => "get",
            Self::Barrier => "barrier",
            Self::Leave => "leave",
        }
    }
}

/// The running program with its agents.
pub(super) struct Training {
    tasks: Vec<Script>,
    pub(super) agents: Vec<Agent>,
    /// The directory of the files that direct the program.
    control: PathBuf,
    _ports: ReservedPorts,
    _sockets: TempDir,
}

impl Training {
    /// Starts the agents, then the processes.
    pub(super) async fn start(python: &Path, folder: &Path, manners: &Manners) -> Result<Self> {
        let control = folder.join("control");
        if control.exists() {
            fs::remove_dir_all(&control).with_context(|| format!("cannot empty {}", control.display()))?;
        }
        fs::create_dir_all(&control).with_context(|| format!("cannot make {}", control.display()))?;
        let ports = ReservedPorts::reserve(TASKS)?;
        // The path of a socket has room for some 100 bytes: a folder of its own keeps it short.
        let sockets = tempfile::tempdir().context("a folder for sockets")?;
        let mut agents = Vec::new();
        for (task, port) in (0..TASKS).zip(ports.range()) {
            let place = match task {
                TASK_ON_SOCKET => format!("unix:{}", sockets.path().join("agent").display()),
                _ => format!("127.0.0.1:{port}"),
            };
            let log = folder.join(format!("agent-{task}.log"));
            agents.push(Agent::start(&place, manners.agent_flags(), &log).await?);
        }
        let mut tasks = Vec::new();
        for (task, agent) in (0..TASKS).zip(&agents) {
            tasks.push(start_task(python, folder, &control, manners, task, agent.place())?);
        }
        Ok(Self { tasks, agents, control, _ports: ports, _sockets: sockets })
    }

    /// Waits until every process has done its first steps.
    pub(super) async fn under_way(&mut self) -> Result<()> {
        self.reach(2, FIRST_STEP_LIMIT).await
    }

    /// Waits for two more steps of every process: one of them began after this call.
    pub(super) async fn go_on(&mut self) -> Result<()> {
        let furthest = self.tasks.iter().filter_map(last_number).max().unwrap_or_default();
        self.reach(furthest + 2, STEP_LIMIT).await
    }

    /// Makes the other processes wait for process 0, until each of them is inside its call.
    pub(super) async fn wait(&mut self, wait: Wait) -> Result<()> {
        self.direct("wait", wait)?;
        for task in &mut self.tasks {
            let fits = |step: &Value| step["step"] == "waiting" && step["kind"] == wait.name();
            task.wait_for_step(STEP_LIMIT, fits).await?;
        }
        Ok(())
    }

    /// Lets process 0 end the wait.
    pub(super) fn end_wait(&self, wait: Wait) -> Result<()> {
        self.direct("go", wait)
    }

    /// Lets the program end, if it was not told to before; every process must end with success.
    pub(super) async fn finish(&mut self) -> Result<()> {
        self.direct("wait", Wait::Leave)?;
        self.end_wait(Wait::Leave)?;
        for task in &mut self.tasks {
            task.succeed(END_LIMIT).await?;
            let steps = task.steps();
            ensure!(steps.iter().any(|step| step["step"] == "end"), "a process did not report its end");
        }
        Ok(())
    }

    /// How many steps each process has reported: a place to look from later.
    pub(super) fn mark(&self) -> Vec<usize> {
        self.tasks.iter().map(|task| task.steps().len()).collect()
    }

    /// The longest call of any process that ended since the mark, in milliseconds.
    pub(super) fn longest_ms_since(&self, mark: &[usize]) -> u64 {
        let since = self.tasks.iter().zip(mark).flat_map(|(task, seen)| task.steps().split_off(*seen));
        since.filter_map(|step| step["longest_ms"].as_u64()).max().unwrap_or_default()
    }

    /// How many calls were cut so far, and repeated.
    pub(super) fn cut_calls(&self) -> usize {
        self.tasks.iter().flat_map(Script::steps).filter(|step| step["step"] == "cut").count()
    }

    /// What the first process said of itself when it was connected.
    pub(super) fn introduction(&self) -> Result<Value> {
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

fn start_task(
    python: &Path,
    folder: &Path,
    control: &Path,
    manners: &Manners,
    task: u16,
    address: &str,
) -> Result<Script> {
    let control = control.to_str().context("the folder is no text")?;
    let (tasks, id) = (TASKS.to_string(), task.to_string());
    let mut arguments = manners.script_flags();
    let place = ["--address", address, "-n", &tasks, "--id", &id, "--control", control];
    arguments.extend(place.map(str::to_owned));
    let variables: &[(&str, &str)] =
        if manners.wait_for_agents { &[("GRPC_FAIL_FAST", "false")] } else { &[] };
    Script::start(python, "train_agent.py", &arguments, variables, folder, &format!("task-{task}"))
}

fn last_number(task: &Script) -> Option<u64> {
    task.steps().iter().filter_map(|step| step["number"].as_u64()).max()
}
