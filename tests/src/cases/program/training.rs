//! The three processes of the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tripod_processes::cluster::connections::connections_to;
use tripod_tests::python::Script;

pub(super) const TASKS: u32 = 3;
/// Steps that the program does at least; it goes on until the fault is over.
pub(super) const STEPS: u64 = 40;
/// Pause between two steps, in seconds: many calls are under way when a fault comes, and others get the processor.
const PACE_S: &str = "0.1";
/// Heartbeat timeout: longer than an election, short enough to notice a mistake.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(20);
/// Interpreter start, compilation and registration of three processes on two cores.
const FIRST_STEP_LIMIT: Duration = Duration::from_secs(120);
/// One step with an election in it.
const STEP_LIMIT: Duration = Duration::from_secs(45);
const END_LIMIT: Duration = Duration::from_secs(120);

/// How the processes are started.
#[derive(Clone, Copy)]
pub(super) struct Manners {
    pub(super) heartbeat: Duration,
    /// A call that is cut with its connection is repeated by the program.
    pub(super) repeat_cut_calls: bool,
    /// Calls wait while no node can be reached (`GRPC_FAIL_FAST=false`).
    pub(super) wait_for_nodes: bool,
    /// Each process waits for so many keys `held/N`, one after the other, beside its training.
    pub(super) held_gets: u64,
}

impl Manners {
    pub(super) const PLAIN: Self =
        Self { heartbeat: HEARTBEAT, repeat_cut_calls: false, wait_for_nodes: false, held_gets: 0 };
}

/// The running program.
pub(super) struct Training {
    tasks: Vec<Script>,
    until: PathBuf,
}

impl Training {
    /// Starts the processes, which try the addresses in the order given.
    pub(super) fn start(
        python: &Path,
        folder: &Path,
        addresses: &[String],
        manners: Manners,
    ) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let until = folder.join("finish");
        if until.exists() {
            fs::remove_file(&until).with_context(|| format!("cannot remove {}", until.display()))?;
        }
        let target = format!("ipv4:{}", addresses.join(","));
        let mut tasks = Vec::new();
        for task in 0..TASKS {
            let mut arguments = vec![
                "--address".to_owned(),
                target.clone(),
                "-n".to_owned(),
                TASKS.to_string(),
                "--id".to_owned(),
                task.to_string(),
                "--steps".to_owned(),
                STEPS.to_string(),
                "--pace".to_owned(),
                PACE_S.to_owned(),
                "--heartbeat-timeout".to_owned(),
                manners.heartbeat.as_secs().to_string(),
                "--held-gets".to_owned(),
                manners.held_gets.to_string(),
                "--until".to_owned(),
                until.to_str().context("the folder is no text")?.to_owned(),
            ];
            if manners.repeat_cut_calls {
                arguments.push("--repeat-cut-calls".to_owned());
            }
            let variables: &[(&str, &str)] =
                if manners.wait_for_nodes { &[("GRPC_FAIL_FAST", "false")] } else { &[] };
            let name = format!("task-{task}");
            tasks.push(Script::start(python, "train.py", &arguments, variables, folder, &name)?);
        }
        Ok(Self { tasks, until })
    }

    /// Waits until every process has done step `number`.
    pub(super) async fn reach(&mut self, number: u64) -> Result<()> {
        let limit = if number < 10 { FIRST_STEP_LIMIT } else { STEP_LIMIT };
        for task in &mut self.tasks {
            task.wait_for_step(limit, |step| step["number"].as_u64().is_some_and(|at| at >= number)).await?;
        }
        Ok(())
    }

    /// Waits for two more steps of every process: one of them began after this call.
    pub(super) async fn go_on(&mut self) -> Result<()> {
        let furthest = self.tasks.iter().filter_map(last_number).max().unwrap_or_default();
        self.reach(furthest + 2).await
    }

    /// Waits until every process reports `step` of its wait number `place`.
    pub(super) async fn wait_for_get(&mut self, step: &str, place: u64) -> Result<()> {
        for task in &mut self.tasks {
            task.wait_for_step(STEP_LIMIT, |seen| seen["step"] == step && seen["place"] == place).await?;
        }
        Ok(())
    }

    /// How many connections each process has to `port`.
    pub(super) fn connections(&self, port: u16) -> Result<Vec<usize>> {
        self.tasks.iter().map(|task| connections_to(task.pid(), port)).collect()
    }

    /// Lets the program end, which it must do with success everywhere; how many calls were repeated.
    pub(super) async fn finish(mut self) -> Result<u64> {
        fs::write(&self.until, "").with_context(|| format!("cannot write {}", self.until.display()))?;
        let mut repeats = 0;
        for task in &mut self.tasks {
            task.succeed(END_LIMIT).await?;
            let steps = task.steps();
            let end = steps.iter().find(|step| step["step"] == "end").context("no report at the end")?;
            let trained = end["steps"].as_u64().unwrap_or_default();
            ensure!(trained >= STEPS, "a process did {trained} steps instead of at least {STEPS}");
            repeats += end["repeats"].as_u64().context("no count of repeats")?;
        }
        Ok(repeats)
    }
}

fn last_number(task: &Script) -> Option<u64> {
    task.steps().iter().filter_map(|step: &Value| step["number"].as_u64()).max()
}
