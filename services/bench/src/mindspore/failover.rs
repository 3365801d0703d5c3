//! The leader is killed under workers that write entries: for how long does none of its writes reach a worker's scheduler?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tripod_load::mindspore::Worker;
use tripod_processes::cluster::Cluster;

use super::{Row, dynamic};
use crate::stats::Samples;

/// One for each node of ours.
const WORKERS: u32 = 3;
/// Writes of each worker before the kill, and behind it.
const ENOUGH: usize = 50;
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// Kills the leader again and again; the pause is the longest that any worker saw.
pub(super) async fn run(cluster: &mut Cluster, trials: u64) -> anyhow::Result<Vec<Row>> {
    let mut pauses = Samples::default();
    for trial in 1..=trials {
        let leader = cluster.wait_for_leader().await?;
        let job = super::job(cluster, &format!("failover-{trial}"), WORKERS, 0).await?;
        let (workers, _) = dynamic::form(&job.addresses, WORKERS).await?;
        let writers = Writers::start(workers);
        writers.wait_for(ENOUGH).await.context("before the kill")?;
        let killed = Instant::now();
        cluster.kill(leader)?;
        writers.wait_for_behind(killed, ENOUGH).await.context("after the leader was killed")?;
        let pause = writers.stop().await?;
        eprintln!("trial {trial} of {trials}: workers wait {:.0} ms", pause.as_secs_f64() * 1e3);
        pauses.push(pause.as_secs_f64());
        cluster.restart(leader)?;
        cluster.wait_until_ready().await?;
        job.delete().await?;
    }
    Ok(vec![Row::new(
        format!(
            "the leader is killed: the longest that one of {WORKERS} workers waits for its entry, median"
        ),
        format!("{:.2} s ({:.2}..{:.2})", pauses.median(), pauses.min(), pauses.max()),
    )])
}

/// When each worker's writes were read back.
type Times = Arc<std::sync::Mutex<Vec<Vec<Instant>>>>;

struct Writers {
    times: Times,
    over: Arc<AtomicBool>,
    running: JoinSet<()>,
}

impl Writers {
    fn start(workers: Vec<Worker>) -> Self {
        let times: Times = Arc::new(std::sync::Mutex::new(vec![Vec::new(); workers.len()]));
        let over = Arc::new(AtomicBool::new(false));
        let mut running = JoinSet::new();
        for (place, worker) in workers.into_iter().enumerate() {
            running.spawn(write(worker, place, Arc::clone(&times), Arc::clone(&over)));
        }
        Self { times, over, running }
    }

    async fn wait_for(&self, enough: usize) -> anyhow::Result<()> {
        self.until(|times| times.len() >= enough).await
    }

    async fn wait_for_behind(&self, moment: Instant, enough: usize) -> anyhow::Result<()> {
        self.until(|times| times.iter().filter(|time| **time > moment).count() >= enough).await
    }

    async fn until(&self, enough: impl Fn(&Vec<Instant>) -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !lock(&self.times).iter().all(&enough) {
            ensure!(Instant::now() < deadline, "a worker has too few answers after {PATIENCE:?}");
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        Ok(())
    }

    /// The longest time between two answers to one worker.
    async fn stop(mut self) -> anyhow::Result<Duration> {
        self.over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.running.join_next().await {
            ended.context("a worker panicked")?;
        }
        let times = lock(&self.times);
        let gaps =
            times.iter().flat_map(|times| times.windows(2).map(|pair| pair[1].duration_since(pair[0])));
        gaps.max().context("no answers")
    }
}

fn lock(times: &Times) -> std::sync::MutexGuard<'_, Vec<Vec<Instant>>> {
    times.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

async fn write(mut worker: Worker, place: usize, times: Times, over: Arc<AtomicBool>) {
    let name = format!("entry-{}", worker.id());
    let mut value = 0_u64;
    while !over.load(Ordering::Relaxed) {
        value += 1;
        let text = Bytes::from(value.to_string());
        match worker.write(&name, text.clone()).await {
            Ok(Some(read)) if read == text => lock(&times)[place].push(Instant::now()),
            // It is asked for again at the next node, as a sidecar does.
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}
