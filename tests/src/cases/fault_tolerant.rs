//! `examples/jax_fault_tolerant.py` with three processes, each below a `tripod run` that begins it again: every process is
//! killed, process 0 more than once, and two at a time.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tripod_chaos::cluster::find_tripod;
use tripod_client::{Client, Condition};
use tripod_tests::jobs;
use tripod_tests::python::{Ending, Script};
use tripod_tests::wait;

use crate::settings::Settings;

const TASKS: usize = 3;
/// Who is killed, one round after the other.
const ROUNDS: [&[usize]; 5] = [&[0], &[2], &[0], &[1], &[0, 2]];
/// A process begins, or the others go on.
const LIMIT: Duration = Duration::from_secs(120);
/// Where the program keeps how many steps were made, and a number that ends it.
const STEP_KEY: &str = "example/step";
const STEPS: u64 = 1_000_000;
const EXAMPLE: &str = "../../examples/jax_fault_tolerant.py";

/// One process of the program, in all of its lives.
struct Process {
    number: usize,
    script: Script,
}

/// Kills and looks.
pub(super) async fn run(
    settings: &Settings,
    release: &str,
    folder: &Path,
    endpoints: &[String],
) -> Result<String> {
    let client = jobs::client(endpoints)?;
    let name = format!("fault-tolerant-{release}");
    let start = |number: usize| -> Result<Process> {
        let mut run = Command::new(find_tripod()?);
        run.args(["run", "--job", &name, "--tasks", &TASKS.to_string(), "--task-id", &number.to_string()]);
        run.args(["--cluster", &endpoints.join(","), "--recoverable", "--heartbeat-timeout", "10"]);
        run.args(["--restarts", "20", "--"]).arg(settings.python(release)?);
        let steps = STEPS.to_string();
        let arguments = ["--pause", "0.05", "--steps", &steps];
        let script = Script::start_by(run, EXAMPLE, &arguments, &[], folder, &format!("process-{number}"))?;
        Ok(Process { number, script })
    };
    let mut processes = (0..TASKS).map(start).collect::<Result<Vec<_>>>()?;
    let all: BTreeSet<usize> = (0..TASKS).collect();
    wait_for_steps(&mut processes, &all, &all).await?;
    let mut slowest = Duration::ZERO;
    for victims in ROUNDS {
        let begun: Vec<usize> = processes.iter().map(|process| process.begun().len()).collect();
        for victim in victims {
            processes[*victim].kill()?;
        }
        let killed = Instant::now();
        let living = all.iter().copied().filter(|number| !victims.contains(number)).collect();
        wait_for_steps(&mut processes, &living, &living).await?;
        slowest = slowest.max(killed.elapsed());
        for victim in victims {
            let (process, before) = (&processes[*victim], begun[*victim]);
            wait::until("a process that comes back", LIMIT, || {
                Ok((process.begun().len() > before).then_some(()))
            })
            .await?;
        }
        wait_for_steps(&mut processes, &all, &all).await?;
    }
    end(&client, &name).await?;
    for process in &mut processes {
        let ending = process.script.finish(LIMIT).await?;
        ensure!(ending == Ending::Exit(0), "process {} ended with {ending:?}", process.number);
        process.saw_itself()?;
    }
    client.jobs().delete(&name).await?;
    Ok(format!("the others went on within {:.1} s of a death", slowest.as_secs_f64()))
}

/// The step from which the program makes no more.
async fn end(client: &Client, name: &str) -> Result<()> {
    let kv = client.kv(name);
    // Whoever is the first of those that live writes the number of the next step over it, until all have seen it.
    let deadline = Instant::now() + wait::scaled(LIMIT);
    while client.jobs().get(name).await?.context("the job is gone")?.tasks_connected > 0 {
        ensure!(Instant::now() < deadline, "the program goes on");
        kv.put(STEP_KEY, STEPS.to_string().into(), Condition::Always).await?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Waits until each of `who` makes another step together with `living`, and with nobody else.
async fn wait_for_steps(
    processes: &mut [Process],
    who: &BTreeSet<usize>,
    living: &BTreeSet<usize>,
) -> Result<()> {
    for process in processes.iter().filter(|process| who.contains(&process.number)) {
        let seen = process.lists().len();
        let what = format!("a step of process {} with {living:?}", process.number);
        wait::until(&what, LIMIT, || {
            Ok(process.lists().iter().skip(seen).any(|list| list == living).then_some(()))
        })
        .await
        .with_context(|| process.script.output().lines().rev().take(20).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(())
}

impl Process {
    fn events(&self, kind: &str) -> Vec<Value> {
        let output = self.script.output();
        let lines = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["event"] == kind).collect()
    }

    /// The process ids of its lives.
    fn begun(&self) -> Vec<i32> {
        let lives = self.events("begun");
        lives.iter().filter_map(|life| i32::try_from(life["pid"].as_i64()?).ok()).collect()
    }

    /// With whom it made each of its steps.
    fn lists(&self) -> Vec<BTreeSet<usize>> {
        let number = |process: &Value| process.as_u64().and_then(|number| usize::try_from(number).ok());
        let list = |step: &Value| step["live"].as_array().into_iter().flatten().filter_map(number).collect();
        self.events("step").iter().map(list).collect()
    }

    /// Kills the life that runs, and not what began it.
    fn kill(&self) -> Result<()> {
        let pid = *self.begun().last().context("it has not begun")?;
        kill(Pid::from_raw(pid), Signal::SIGKILL).with_context(|| format!("cannot kill {pid}"))
    }

    fn saw_itself(&self) -> Result<()> {
        let strange = self.lists().into_iter().find(|list| !list.contains(&self.number));
        ensure!(strange.is_none(), "process {} made a step of {strange:?}", self.number);
        Ok(())
    }
}
