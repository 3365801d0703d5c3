//! A gang of thousands of tasks behind agents that are processes: start, heartbeats, and the death of the leader in the middle.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tripod_load::task::Task;

use crate::Section;
use crate::stats::Goal;
use tripod_processes::cluster::{Agent, Cluster, ClusterOptions, ReservedPorts};

const TASKS: usize = 2_000;
const AGENTS: u16 = 32;
const HEARTBEAT_TIMEOUT_S: u64 = 10;
/// As clients do: half the heartbeat timeout.
const BEAT_EVERY: Duration = Duration::from_secs(HEARTBEAT_TIMEOUT_S / 2);
/// How long the tasks only beat while the leader's processor time is taken.
const REST: Duration = Duration::from_secs(20);
/// How long a barrier may take at all.
const BARRIER_TIMEOUT: Duration = Duration::from_secs(120);

/// Of the time from its start until a task has registered and passed a barrier, in seconds.
const START_GOAL: Goal = Goal::AtMost(5.0);
/// Of the time from the leader's death until every task has passed the barrier that was open, in seconds.
const FAILOVER_GOAL: Goal = Goal::AtMost(10.0);
/// Of the leader's processor time while all tasks only beat, in percent of a core.
const REST_GOAL: Goal = Goal::AtMost(10.0);

struct Measured {
    /// Seconds, one a task, ascending.
    starts_s: Vec<f64>,
    rest_percent: f64,
    failover_s: f64,
    beats: u64,
    failed_beats: u64,
}

/// Runs the gang once.
pub(super) async fn run() -> anyhow::Result<Section> {
    let mut cluster = Cluster::start(ClusterOptions::tripod()?).await?;
    let leader = cluster.wait_for_leader().await?;
    let folder = tempfile::tempdir().context("a directory for the agents' logs")?;
    let ports = ReservedPorts::reserve(AGENTS)?;
    let mut agents = Vec::new();
    for port in ports.range() {
        let place = format!("127.0.0.1:{port}");
        let flags = flags(&cluster, usize::from(port - ports.first()));
        agents.push(Agent::start(&place, flags, &folder.path().join(format!("agent-{port}.log"))).await?);
    }
    eprintln!("{AGENTS} agents listen; {TASKS} tasks begin");
    let places: Vec<String> = agents.iter().map(|agent| agent.place().to_owned()).collect();
    let (tasks, starts_s) = start_all(&places).await?;

    let heart = Heart::new(&tasks);
    let before = cluster.process(leader)?.cpu_time()?;
    // What is measured is the passing of time itself; nothing is waited for.
    tokio::time::sleep(REST).await;
    let used = cluster.process(leader)?.cpu_time()? - before;
    ensure!(cluster.wait_for_leader().await? == leader, "the measured node leads no more");

    let failover_s = lose_the_leader(&mut cluster, leader, tasks).await?;
    let (beats, failed_beats) = heart.stop();
    let rest_percent = 100.0 * used.as_secs_f64() / REST.as_secs_f64();
    let measured = Measured { starts_s, rest_percent, failover_s, beats, failed_beats };
    Ok(Section { name: "gang", markdown: table(&measured) })
}

/// Each agent prefers another node, as agents of different hosts do.
fn flags(cluster: &Cluster, number: usize) -> Vec<String> {
    let mut endpoints = cluster.endpoints();
    let first = number % endpoints.len();
    endpoints.rotate_left(first);
    let (tasks, timeout) = (TASKS.to_string(), HEARTBEAT_TIMEOUT_S.to_string());
    let flags = ["--job", "gang", "--tasks", &tasks, "--heartbeat-timeout", &timeout, "--cluster"];
    flags.into_iter().map(str::to_owned).chain([endpoints.join(",")]).collect()
}

/// Registers all tasks and lets them meet; tells how long each took.
async fn start_all(places: &[String]) -> anyhow::Result<(Vec<Task>, Vec<f64>)> {
    let mut starting = JoinSet::new();
    for (number, place) in (0..TASKS).zip(places.iter().cycle().cloned()) {
        let id = i32::try_from(number).context("too many tasks")?;
        starting.spawn(async move {
            let begin = Instant::now();
            let mut task = Task::register(&place, id).await?;
            task.barrier("bench/start", 0, BARRIER_TIMEOUT).await?;
            anyhow::Ok((id, task, begin.elapsed().as_secs_f64()))
        });
    }
    let mut started = Vec::with_capacity(TASKS);
    while let Some(outcome) = starting.join_next().await {
        started.push(outcome.context("a task panicked")??);
    }
    started.sort_by_key(|(id, _, _)| *id);
    let mut starts_s: Vec<f64> = started.iter().map(|(_, _, seconds)| *seconds).collect();
    starts_s.sort_by(f64::total_cmp);
    Ok((started.into_iter().map(|(_, task, _)| task).collect(), starts_s))
}

/// Lets half of the tasks wait in a barrier, kills the leader, lets the others come; seconds from the
/// kill until the last one has passed.
async fn lose_the_leader(cluster: &mut Cluster, leader: u64, tasks: Vec<Task>) -> anyhow::Result<f64> {
    let (word, _) = watch::channel(false);
    let mut passing = JoinSet::new();
    for (number, mut task) in tasks.into_iter().enumerate() {
        let mut word = word.subscribe();
        passing.spawn(async move {
            if number % 2 == 1 {
                word.wait_for(|dead| *dead).await.context("nobody gives the word")?;
            }
            task.barrier("bench/middle", 0, BARRIER_TIMEOUT).await?;
            anyhow::Ok(())
        });
    }
    cluster.kill(leader)?;
    let killed = Instant::now();
    word.send_replace(true);
    while let Some(outcome) = passing.join_next().await {
        outcome.context("a task panicked")?.context("a task did not pass the barrier")?;
    }
    Ok(killed.elapsed().as_secs_f64())
}

/// Beats for all tasks until it is stopped.
struct Heart {
    beating: Vec<JoinHandle<()>>,
    beats: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
}

impl Heart {
    fn new(tasks: &[Task]) -> Self {
        let (beats, failed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let beat = |(number, task): (usize, &Task)| {
            let (mut task, beats, failed) = (task.clone(), Arc::clone(&beats), Arc::clone(&failed));
            // Spread as the starts of real processes are.
            let offset = BEAT_EVERY.mul_f64(number as f64 / TASKS as f64);
            tokio::spawn(async move {
                tokio::time::sleep(offset).await;
                loop {
                    // A client that has no answer by then, or a bad one, ends its process.
                    let answered = tokio::time::timeout(BEAT_EVERY, task.heartbeat()).await;
                    beats.fetch_add(1, Ordering::Relaxed);
                    if !matches!(answered, Ok(Ok(()))) {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                    tokio::time::sleep(BEAT_EVERY).await;
                }
            })
        };
        let beating = tasks.iter().enumerate().map(beat).collect();
        Self { beating, beats, failed }
    }

    /// How many beats there were, and how many a client would have died of.
    fn stop(self) -> (u64, u64) {
        self.beating.iter().for_each(JoinHandle::abort);
        (self.beats.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }
}

fn table(measured: &Measured) -> String {
    let at = |quantile: f64| {
        let place = (measured.starts_s.len() as f64 * quantile) as usize;
        measured.starts_s[place.min(measured.starts_s.len() - 1)]
    };
    let mut text = format!(
        "{TASKS} tasks in one process, each with a connection of its own to one of {AGENTS} agents; heartbeat timeout \
         {HEARTBEAT_TIMEOUT_S} s.\n\n| figure | measured | goal | |\n|---|---|---|---|\n"
    );
    let start = at(0.99);
    let _ = writeln!(
        text,
        "| register and barrier, p99 (p50) | {start:.2} s ({:.2} s) | {} |",
        at(0.5),
        START_GOAL.cells(start, " s")
    );
    let (rest, failover) = (measured.rest_percent, measured.failover_s);
    let _ = writeln!(
        text,
        "| leader's processor time while all only beat | {rest:.1} % | {} |",
        REST_GOAL.cells(rest, " %")
    );
    let _ = writeln!(
        text,
        "| from the leader's death until all have passed the open barrier | {failover:.2} s | {} |",
        FAILOVER_GOAL.cells(failover, " s")
    );
    let failed = measured.failed_beats as f64;
    let _ = writeln!(
        text,
        "| heartbeats that a client would have died of, of {} | {failed} | {} |",
        measured.beats,
        Goal::AtMost(0.0).cells(failed, "")
    );
    text
}
