//! A gang whose tasks are behind agents: they beat all the time, and meet at a barrier again and again. A client of theirs
//! ends its process at the first error, so whatever an agent tells them but an answer is too much.

use std::time::Duration;

use futures::future::{join_all, try_join_all};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tripod_load::task::Task;

/// Of the job. A real agent answers heartbeats for a while when nobody leads.
pub const HEARTBEAT_TIMEOUT_S: u64 = 10;
/// As clients do: half the heartbeat timeout. So long they wait for an answer, too.
const BEAT_EVERY: Duration = Duration::from_secs(HEARTBEAT_TIMEOUT_S / 2);
/// How long a barrier may take: longer than a cluster that is upgraded needs for anything.
const BARRIER_TIMEOUT: Duration = Duration::from_secs(120);
/// Between two barriers, so that some of them are open when a node goes and some are not.
const REST: Duration = Duration::from_millis(100);
const BARRIER: &str = "upgrade";

/// One that goes on until it is told to end. Dropping it ends it at once.
#[derive(Debug)]
pub struct AgentGang {
    stop: watch::Sender<bool>,
    /// Gives how often all have met, and how often they beat.
    going_on: JoinSet<Result<AgentGangSeen, String>>,
}

/// What a gang has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentGangSeen {
    /// Barriers that every task has passed.
    pub barriers: u64,
    /// Heartbeats that were answered.
    pub beats: u64,
}

impl AgentGang {
    /// One with a task at each of these places of agents of its job, whose number of tasks must be the same. Returns when all
    /// have registered.
    ///
    /// # Errors
    /// A task cannot register.
    pub async fn start(places: &[String]) -> anyhow::Result<Self> {
        let registering = (0..).zip(places).map(|(id, place)| Task::register(place, id));
        let tasks = try_join_all(registering).await?;
        let (stop, stopped) = watch::channel(false);
        let mut going_on = JoinSet::new();
        going_on.spawn(go_on(tasks, stopped));
        Ok(Self { stop, going_on })
    }

    /// Has it end when all have met once more and have left the job, and gives what it has done.
    ///
    /// # Errors
    /// What a task was told that its client would have ended for.
    pub async fn end(mut self) -> Result<AgentGangSeen, String> {
        self.stop.send_replace(true);
        match self.going_on.join_next().await {
            Some(Ok(seen)) => seen,
            Some(Err(error)) => Err(format!("the gang's own task ended: {error}")),
            None => Err("the gang has no task".to_owned()),
        }
    }
}

async fn go_on(tasks: Vec<Task>, stopped: watch::Receiver<bool>) -> Result<AgentGangSeen, String> {
    let mut hearts = JoinSet::new();
    for task in &tasks {
        hearts.spawn(beat(task.clone(), stopped.clone()));
    }
    let barriers = meet(&tasks, stopped).await?;
    let mut beats = 0;
    while let Some(heart) = hearts.join_next().await {
        beats += heart.map_err(|error| format!("a heart ended: {error}"))??;
    }
    let leaving = tasks.into_iter().map(Task::shut_down);
    for left in join_all(leaving).await {
        left.map_err(|status| format!("a task that leaves was told {status:?}"))?;
    }
    Ok(AgentGangSeen { barriers, beats })
}

/// All tasks meet until they are told to stop, and once more then.
async fn meet(tasks: &[Task], stopped: watch::Receiver<bool>) -> Result<u64, String> {
    for round in 0.. {
        let is_last = *stopped.borrow();
        let passing = tasks.iter().cloned().enumerate().map(|(place, mut task)| async move {
            // Not all at once: then somebody waits when the others come.
            sleep(REST * u32::try_from(place).unwrap_or(0)).await;
            let passed = task.barrier(BARRIER, round, BARRIER_TIMEOUT).await;
            passed.map_err(|status| format!("task {place} was told {status:?} by barrier {round}"))
        });
        try_join_all(passing).await?;
        if is_last {
            return Ok(u64::try_from(round).unwrap_or(0) + 1);
        }
        sleep(REST).await;
    }
    Err("there is no further barrier".to_owned())
}

/// Beats until it is told to stop.
async fn beat(mut task: Task, mut stopped: watch::Receiver<bool>) -> Result<u64, String> {
    let mut ticks = interval(BEAT_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for beats in 0.. {
        tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => return Ok(beats),
            _ = ticks.tick() => {}
        }
        match timeout(BEAT_EVERY, task.heartbeat()).await {
            Ok(Ok(())) => {}
            Ok(Err(status)) => return Err(format!("heartbeat {beats} of a task was told {status:?}")),
            Err(_) => return Err(format!("heartbeat {beats} of a task had no answer for {BEAT_EVERY:?}")),
        }
    }
    Err("there is no further heartbeat".to_owned())
}
