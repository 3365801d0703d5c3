//! Programs and jobs that do not agree on when a task is lost: no healthy process dies of it, and a killed task is named
//! when the time is up that both agree on, which is the longer one.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tripod_client::Client;
use tripod_processes::cluster::{Agent, ReservedPorts, find_tripod};
use tripod_tests::jobs::{self, Poll};
use tripod_tests::python::{Ending, Script};
use tripod_tests::wait::scaled;

use crate::cases::Given;

const TASKS: u32 = 2;
const VICTIM: u32 = 1;
/// Registration of all tasks on a busy machine.
const READY_LIMIT: Duration = Duration::from_secs(120);
/// The slowest program sends its first heartbeat after 50 s.
const NOTED_LIMIT: Duration = Duration::from_secs(120);
/// The longest time until a survivor hears of the victim's death, also if a leader is elected meanwhile.
const ALLOWED_AT_ALL: Duration = Duration::from_secs(260);
/// What jaxlib does to its process when it learns of an error.
const SIGABRT: i32 = 6;
/// Adds the place of the agent to a command line.
const WITH_ADDRESS: &str = r#"exec "$0" "$@" --address "$JAX_COORDINATOR_ADDRESS""#;

/// How the surviving task reaches the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    Agent,
    Run,
}

/// After how many seconds the job gives up a task, and after how many its program expects that.
const GANGS: [(u64, u64, Way); 13] = [
    (5, 5, Way::Direct),
    (5, 10, Way::Direct),
    (5, 100, Way::Direct),
    (10, 5, Way::Direct),
    (10, 10, Way::Direct),
    (10, 100, Way::Direct),
    (60, 5, Way::Direct),
    (60, 10, Way::Direct),
    (60, 100, Way::Direct),
    (10, 100, Way::Agent),
    (60, 5, Way::Agent),
    (10, 100, Way::Run),
    (60, 10, Way::Run),
];

/// Two tasks with a job of their own.
struct Gang {
    name: String,
    job: Duration,
    program: Duration,
    way: Way,
    survivor: Script,
    victim: Script,
    _agent: Option<(Agent, ReservedPorts)>,
}

/// Starts all gangs, lets the slowest send a heartbeat, and then kills a task of each.
pub(super) async fn run(given: Given<'_>, release: &str) -> Result<String> {
    let client = jobs::client(given.endpoints)?;
    let mut gangs = Vec::new();
    for (job_s, program_s, way) in GANGS {
        gangs.push(Gang::start(given, release, (job_s, program_s, way), &client).await?);
    }
    for gang in &mut gangs {
        gang.survivor.wait_for_step(READY_LIMIT, |step| step["step"] == "ready").await?;
        gang.victim.wait_for_step(READY_LIMIT, |step| step["step"] == "ready").await?;
    }
    for gang in &mut gangs {
        gang.wait_until_noted(&client).await?;
    }
    for gang in &mut gangs {
        gang.is_well(&client).await?;
    }
    let term = jobs::newest_term(&client).await?;
    for gang in &mut gangs {
        gang.victim.kill()?;
    }
    let killed = Instant::now();
    // Those with the least time first: each is looked at when it should have ended.
    gangs.sort_by_key(Gang::agreed);
    let mut late = Duration::ZERO;
    for gang in &mut gangs {
        let after = gang.end(killed).await?;
        late = late.max(after.saturating_sub(gang.agreed()));
        // A new leader gives every task its time anew.
        let elected = jobs::newest_term(&client).await? != term;
        let allowed = scaled(gang.agreed() + gang.agreed() / 2);
        ensure!(after <= allowed || elected, "{}: told after {after:?}, not within {allowed:?}", gang.name);
        client.jobs().delete(&gang.name).await?;
    }
    Ok(format!("told at most {:.1} s after the time was up", late.as_secs_f64()))
}

impl Gang {
    async fn start(
        given: Given<'_>,
        release: &str,
        (job_s, program_s, way): (u64, u64, Way),
        client: &Client,
    ) -> Result<Self> {
        let Given { settings, folder, endpoints } = given;
        let way_name = format!("{way:?}").to_lowercase();
        let name = format!("heartbeats-{release}-{job_s}-{program_s}-{way_name}");
        let (job, program) = (Duration::from_secs(job_s), Duration::from_secs(program_s));
        let spec = jobs::spec(TASKS, job, Poll::Hold)?;
        let addresses = jobs::create(client, &name, &spec).await?;
        let (direct, python) = (format!("ipv4:{}", addresses.join(",")), settings.python(release)?);
        let script = |task: u32, address: Option<&str>| {
            let mut arguments =
                ["idle", "-n", "2", "--init-timeout", "100", "--secs", "900"].map(str::to_owned).to_vec();
            arguments.extend(["--id".to_owned(), task.to_string()]);
            arguments.extend(["--heartbeat-timeout".to_owned(), program_s.to_string()]);
            if let Some(address) = address {
                arguments.extend(["--address".to_owned(), address.to_owned()]);
            }
            arguments
        };
        let (file, of_task) = ("worker.py", |task: u32| format!("{name}-{task}"));
        let start = |task: u32, address: &str| {
            Script::start(python, file, &script(task, Some(address)), &[], folder, &of_task(task))
        };
        let victim = start(VICTIM, &direct)?;
        let mut running_agent = None;
        let survivor = match way {
            Way::Direct => start(0, &direct)?,
            Way::Agent => {
                let flags = ["--cluster", &endpoints.join(","), "--job", &name].map(str::to_owned).to_vec();
                let log = folder.join(format!("{name}-agent.log"));
                let ports = ReservedPorts::reserve(1)?;
                let agent = Agent::start(&format!("127.0.0.1:{}", ports.first()), flags, &log).await?;
                let started = start(0, agent.place())?;
                running_agent = Some((agent, ports));
                started
            }
            Way::Run => {
                let mut run = Command::new(find_tripod()?);
                run.args(["run", "--job", &name, "--task-id", "0", "--cluster", &endpoints.join(",")]);
                run.args(["--heartbeat-timeout", &job_s.to_string(), "--", "sh", "-c", WITH_ADDRESS])
                    .arg(python);
                Script::start_by(run, file, &script(0, None), &[], folder, &of_task(0))?
            }
        };
        Ok(Self { name, job, program, way, survivor, victim, _agent: running_agent })
    }

    /// After what time both sides agree that a task is lost.
    fn agreed(&self) -> Duration {
        self.job.max(self.program)
    }

    /// Waits until the job says that it waits as long as its programs expect.
    async fn wait_until_noted(&mut self, client: &Client) -> Result<()> {
        let agreed_ms = u64::try_from(self.agreed().as_millis())?;
        let deadline = Instant::now() + scaled(NOTED_LIMIT);
        loop {
            let job = client.jobs().get(&self.name).await?.context("the job is gone")?;
            // gRPC rounds a deadline to three digits.
            let is_noted = |limit_ms: u64| limit_ms.abs_diff(agreed_ms) <= agreed_ms / 20;
            if job.tasks.iter().all(|task| is_noted(task.silence_limit_ms)) {
                return Ok(());
            }
            ensure!(job.tasks_in_error == 0, "{}: a healthy task was given up:\n{}", self.name, self.said());
            ensure!(
                Instant::now() < deadline,
                "{}: the job does not wait for its programs: {job:?}",
                self.name
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn is_well(&mut self, client: &Client) -> Result<()> {
        let job = client.jobs().get(&self.name).await?.context("the job is gone")?;
        let running = self.survivor.is_running() && self.victim.is_running();
        ensure!(running && job.tasks_connected == TASKS, "{}: {job:?}\n{}", self.name, self.said());
        if self.way == Way::Run && self.program > self.job {
            let warned = format!(
                "the program sends a heartbeat every {} s, and the job gives up after {} s",
                self.program.as_secs() / 2,
                self.job.as_secs()
            );
            ensure!(self.survivor.output().contains(&warned), "{}: no warning:\n{}", self.name, self.said());
        }
        Ok(())
    }

    /// Waits for the survivor's end; how long after the victim's it came.
    async fn end(&mut self, killed: Instant) -> Result<Duration> {
        let ending = self.survivor.finish(ALLOWED_AT_ALL.saturating_sub(killed.elapsed())).await?;
        let after = killed.elapsed();
        let expected =
            if self.way == Way::Run { Ending::Exit(128 + SIGABRT) } else { Ending::Signal(SIGABRT) };
        ensure!(ending == expected, "{}: the survivor ended with {ending:?}:\n{}", self.name, self.said());
        let told = format!(
            "The following tasks are unhealthy (stopped sending heartbeats):\n{VICTIM}\nThe tasks have crashed."
        );
        ensure!(self.said().contains(&told), "{}: not told who died:\n{}", self.name, self.said());
        if self.way == Way::Run {
            let lost = format!("task {VICTIM} was lost (no heartbeat for {} s)", self.agreed().as_secs());
            ensure!(self.said().contains(&lost), "{}: not blamed:\n{}", self.name, self.said());
        }
        Ok(after)
    }

    fn said(&self) -> String {
        self.survivor.output()
    }
}
