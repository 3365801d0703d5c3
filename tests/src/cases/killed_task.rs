//! A task that dies takes its job along, and everybody is told which task it was.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tripod_tests::jobs::{self, Poll};
use tripod_tests::python::{Ending, Script};

use crate::cases::Given;

const TASKS: u32 = 3;
const VICTIM: u32 = 2;
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Registration of all tasks on a busy machine.
const READY_LIMIT: Duration = Duration::from_secs(90);
/// How long after its registration the task is killed: before its first heartbeat, so that its time runs from
/// the registration, and long enough after it that the others' heartbeat that follows its loss falls well
/// within the time that they have.
const SILENT: Duration = Duration::from_secs(3);
/// The longest time until the survivors hear of it, also if a leader is elected meanwhile.
const ALLOWED_AT_ALL: Duration = Duration::from_secs(60);
/// What jaxlib does to its process when it learns of an error.
const SIGABRT: i32 = 6;

/// Kills one of three idle tasks and watches the others.
pub(super) async fn run(given: Given<'_>, release: &str, poll: Poll) -> Result<String> {
    let name = format!("killed-task-{release}-{}", format!("{poll:?}").to_lowercase());
    let client = jobs::client(given.endpoints)?;
    let addresses = jobs::create(&client, &name, &jobs::spec(TASKS, HEARTBEAT, poll)?).await?;
    let mut tasks = Vec::new();
    for task in 0..TASKS {
        tasks.push(start(given, release, &addresses.join(","), task)?);
    }
    for task in &mut tasks {
        task.wait_for_step(READY_LIMIT, |step| step["step"] == "ready").await?;
    }

    // Nothing is waited for here: the time of the death is the fault.
    tokio::time::sleep(SILENT).await;
    let term = jobs::newest_term(&client).await?;
    let mut victim = tasks.remove(usize::try_from(VICTIM)?);
    victim.kill()?;
    let killed = Instant::now();
    let allowed = HEARTBEAT + HEARTBEAT / 2;
    let mut slowest = Duration::ZERO;
    for task in &mut tasks {
        let ending = task.finish(ALLOWED_AT_ALL.saturating_sub(killed.elapsed())).await?;
        slowest = slowest.max(killed.elapsed());
        ensure!(ending == Ending::Signal(SIGABRT), "a survivor ended with {ending:?}:\n{}", task.output());
        let told = format!(
            "absl::Status: UNAVAILABLE: The following tasks are unhealthy (stopped sending \
             heartbeats):\n{VICTIM}\nThe tasks have crashed."
        );
        ensure!(task.output().contains(&told), "a survivor was not told who died:\n{}", task.output());
    }
    // A new leader gives every task its time anew.
    let elected = jobs::newest_term(&client).await? != term;
    ensure!(
        slowest <= allowed || elected,
        "the last survivor ended after {slowest:?}, not within {allowed:?}"
    );
    client.jobs().delete(&name).await?;
    Ok(format!("the last survivor ended after {:.1} s", slowest.as_secs_f64()))
}

fn start(given: Given<'_>, release: &str, target: &str, task: u32) -> Result<Script> {
    let (tasks, task, heartbeat) = (TASKS.to_string(), task.to_string(), HEARTBEAT.as_secs().to_string());
    let target = format!("ipv4:{target}");
    let arguments = [
        "idle",
        "--address",
        &target,
        "-n",
        &tasks,
        "--id",
        &task,
        "--heartbeat-timeout",
        &heartbeat,
        "--init-timeout",
        "60",
        "--secs",
        "150",
    ];
    let python = given.settings.python(release)?;
    Script::start(python, "worker.py", &arguments, &[], given.folder, &format!("task-{task}"))
}
