//! As many tasks as wanted behind agents that this process plays. The wire is real: each agent has a connection, a stream of
//! calls and a session, and what its tasks say are ops of that stream.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tripod_client::wire::JobSpec;
use tripod_client::{Client, Config};
use tripod_load::agents::{BeatsSeen, Fleet, Heart, PlayedAgent, Step, Told};
use tripod_processes::cluster::{Cluster, ClusterOptions};
use tripod_processes::open_files;

use super::phase::{self, Phase};
use super::size::Size;
use super::table;
use super::usage::{Usage, Used};
use crate::Section;

/// How long all tasks may take to register, and to leave: longer than whoever measures waits.
const STEP_TIMEOUT_MS: u64 = 3_600_000;
const FIRST_BARRIER: &str = "bench/first";
const SECOND_BARRIER: &str = "bench/second";

/// What one gang has seen.
#[derive(Debug, Clone)]
pub(super) struct Round {
    /// Until every agent has its connection, its stream and its session.
    pub(super) connect_s: f64,
    pub(super) register: Phase,
    pub(super) first: Phase,
    pub(super) beats: BeatsSeen,
    /// Of a core, while all tasks only beat; `None` if the leader died meanwhile.
    pub(super) leader_percent: Option<f64>,
    /// How they were told then.
    pub(super) beats_told: Told,
    /// Heartbeats for which a client would have ended its process, from the registration to the end.
    pub(super) refused_beats: u64,
    pub(super) second: Phase,
    pub(super) leave: Phase,
    pub(super) told: Told,
    pub(super) used: Used,
}

/// Plays a gang; then, if so, another one whose leaders die.
pub(super) async fn run(size: Size) -> anyhow::Result<Section> {
    open_files::raise_for(size.files())?;
    let mut cluster = Cluster::start(ClusterOptions::tripod()?).await?;
    match rounds(&mut cluster, size).await {
        Ok(rounds) => Ok(Section { name: size.section(), markdown: table::of(size, &rounds) }),
        Err(error) => {
            cluster.keep_data();
            let root = cluster.root().display();
            Err(error.context(format!("the gang has failed; logs and data of the nodes are in {root}")))
        }
    }
}

async fn rounds(cluster: &mut Cluster, size: Size) -> anyhow::Result<Vec<Round>> {
    let calm = Gang::gather(cluster, size, "bench-calm").await?.live(None).await?;
    if !size.kills {
        return Ok(vec![calm]);
    }
    eprintln!("once more, and the leader is killed in the middle of each phase");
    let killed = Gang::gather(cluster, size, "bench-killed").await?.live(Some(&calm)).await?;
    Ok(vec![calm, killed])
}

/// A job whose tasks are behind played agents.
struct Gang<'a> {
    cluster: &'a mut Cluster,
    size: Size,
    client: Client,
    job: &'static str,
    fleet: Fleet,
    agents: Vec<Arc<PlayedAgent>>,
    connect_s: f64,
    usage: Usage,
}

impl<'a> Gang<'a> {
    /// Creates the job, and connects all agents.
    async fn gather(cluster: &'a mut Cluster, size: Size, job: &'static str) -> anyhow::Result<Self> {
        let usage = Usage::begin(cluster)?;
        let client = Client::new(&Config::new(cluster.endpoints()))?;
        let spec = JobSpec {
            tasks: size.tasks,
            heartbeat_timeout_ms: u64::try_from(size.heartbeat_timeout.as_millis())?,
            register_timeout_ms: STEP_TIMEOUT_MS,
            shutdown_timeout_ms: Some(STEP_TIMEOUT_MS),
            ..JobSpec::default()
        };
        client.jobs().create(job, &spec).await.with_context(|| format!("cannot create job {job}"))?;
        let fleet = Fleet::new(cluster.endpoints(), job)?;
        eprintln!("{job}: {} agents connect, with {} tasks behind them", size.agents, size.tasks);
        let begin = Instant::now();
        let agents = connect(&fleet, size).await?;
        let connect_s = begin.elapsed().as_secs_f64();
        eprintln!("{job}: {} agents have connections, streams and sessions: {connect_s:.2} s", agents.len());
        Ok(Self { cluster, size, client, job, fleet, agents, connect_s, usage })
    }

    /// All that its tasks do. `calm` is how it went when no leader died: now one dies in each phase.
    async fn live(mut self, calm: Option<&Round>) -> anyhow::Result<Round> {
        let tasks = self.size.tasks;
        let register = self.step(Step::Register, calm.map(|calm| &calm.register), tasks).await?;
        let heart = Heart::start(&self.agents, self.size.beat_every(), self.size.beats_apart);
        let first = self.step(Step::Barrier(FIRST_BARRIER), calm.map(|calm| &calm.first), tasks).await?;
        let before = self.fleet.told();
        let (beats, leader_percent) = self.beat(&heart, calm.is_some()).await?;
        let beats_told = self.fleet.told().since(before);
        let second = self.step(Step::Barrier(SECOND_BARRIER), calm.map(|calm| &calm.second), tasks).await?;
        let refused_beats = beats.refused + heart.seen().refused;
        drop(heart);
        let leave = self.step(Step::Leave, calm.map(|calm| &calm.leave), 0).await?;
        let used = self.usage.end(self.cluster)?;
        // Those of the next gang find the room that these had.
        let mut closing = JoinSet::new();
        for agent in self.agents {
            closing.spawn(async move { agent.close().await });
        }
        while let Some(closed) = closing.join_next().await {
            closed.context("a played agent panicked")?.context("a session was not closed")?;
        }
        self.client
            .jobs()
            .delete(self.job)
            .await
            .with_context(|| format!("cannot delete job {}", self.job))?;
        let told = self.fleet.told();
        Ok(Round {
            connect_s: self.connect_s,
            register,
            first,
            beats,
            leader_percent,
            beats_told,
            refused_beats,
            second,
            leave,
            told,
            used,
        })
    }

    /// All tasks make a step, and behind it so many are connected. If it is known how long it took, the leader dies in its
    /// middle, and comes back after it.
    async fn step(&mut self, step: Step, calm: Option<&Phase>, connected: u32) -> anyhow::Result<Phase> {
        let phase = match calm {
            None => phase::run(&self.agents, step, None).await?,
            Some(calm) => self.step_under_kill(step, calm.whole_s / 2.0).await?,
        };
        eprintln!(
            "{}: {step:?}: {} tasks in {:.2} s, p99 {:.2} s",
            self.job,
            phase.waits_s.len(),
            phase.whole_s,
            phase::quantile(&phase.waits_s, 0.99)
        );
        self.look(&format!("{step:?}"), connected).await?;
        Ok(phase)
    }

    async fn step_under_kill(&mut self, step: Step, after_s: f64) -> anyhow::Result<Phase> {
        let leader = self.cluster.wait_for_leader().await?;
        self.usage.note(self.cluster)?;
        let (word, heard) = watch::channel(false);
        let cluster = &mut *self.cluster;
        let killing = async {
            // The middle of a step is a time: nobody can see from outside how far it is.
            sleep(Duration::from_secs_f64(after_s)).await;
            cluster.kill(leader)?;
            let killed = Instant::now();
            word.send_replace(true);
            anyhow::Ok(killed)
        };
        let (phase, killed) = tokio::try_join!(phase::run(&self.agents, step, Some(heard)), killing)?;
        eprintln!("{}: {step:?}: node {leader}, which led, was killed in the middle", self.job);
        self.come_back(leader).await?;
        let after_kill_s = Some((phase.ended - killed).as_secs_f64());
        Ok(Phase { after_kill_s, ..phase })
    }

    /// Looks at heartbeats for some seconds, and at how much of a core the leader takes if it does not die.
    async fn beat(&mut self, heart: &Heart, kills: bool) -> anyhow::Result<(BeatsSeen, Option<f64>)> {
        let leader = self.cluster.wait_for_leader().await?;
        heart.look();
        // What is measured is the passing of time itself; nothing is waited for.
        if kills {
            self.usage.note(self.cluster)?;
            sleep(self.size.beating / 2).await;
            self.cluster.kill(leader)?;
            sleep(self.size.beating / 2).await;
            let seen = heart.seen();
            self.come_back(leader).await?;
            return Ok((self.beaten(seen).await?, None));
        }
        let before = self.cluster.process(leader)?.cpu_time()?;
        sleep(self.size.beating).await;
        let used = self.cluster.process(leader)?.cpu_time()? - before;
        let seen = self.beaten(heart.seen()).await?;
        ensure!(self.cluster.wait_for_leader().await? == leader, "the measured node leads no more");
        Ok((seen, Some(100.0 * used.as_secs_f64() / self.size.beating.as_secs_f64())))
    }

    async fn beaten(&self, seen: BeatsSeen) -> anyhow::Result<BeatsSeen> {
        let p99_ms = 1e3 * phase::quantile(&seen.waits_s, 0.99);
        eprintln!(
            "{}: {} heartbeats, p99 {p99_ms:.1} ms, {} refused",
            self.job,
            seen.waits_s.len(),
            seen.refused
        );
        if let Some(first) = &seen.first_refusal {
            eprintln!("{}: the first refusal of a heartbeat: {first}", self.job);
        }
        self.look("heartbeats", self.size.tasks).await?;
        Ok(seen)
    }

    async fn come_back(&mut self, node: u64) -> anyhow::Result<()> {
        self.cluster.restart(node)?;
        self.cluster.wait_until_ready().await
    }

    /// Whether no task was lost or declared dead.
    async fn look(&self, behind: &str, connected: u32) -> anyhow::Result<()> {
        let jobs = self.client.jobs().list().await.context("cannot look at the job")?;
        let job = jobs.into_iter().find(|job| job.name == self.job).context("the job is gone")?;
        ensure!(
            (job.tasks_connected, job.tasks_in_error) == (connected, 0),
            "after {behind}, {} tasks are connected and {} in error, instead of {connected} and none",
            job.tasks_connected,
            job.tasks_in_error
        );
        Ok(())
    }
}

/// All agents, by their numbers.
async fn connect(fleet: &Fleet, size: Size) -> anyhow::Result<Vec<Arc<PlayedAgent>>> {
    let mut connecting = JoinSet::new();
    for number in 0..size.agents {
        let fleet = fleet.clone();
        let tasks: Result<Vec<i32>, _> = size.tasks_of(number).map(i32::try_from).collect();
        let tasks = tasks.context("too many tasks")?;
        connecting.spawn(async move { PlayedAgent::connect(&fleet, number, tasks.into_iter()).await });
    }
    let mut agents = Vec::with_capacity(connecting.len());
    while let Some(agent) = connecting.join_next().await {
        agents.push(Arc::new(agent.context("a played agent panicked")??));
    }
    agents.sort_by_key(|agent| agent.number());
    Ok(agents)
}
