//! Workers of the dynamic cluster: how soon they are one, and what their heartbeats cost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use futures::StreamExt as _;
use futures::stream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tripod_load::mindspore::{Dialect, Failure, Worker};
use tripod_processes::cluster::Cluster;

use super::{AT_ONCE, LIMIT, Row};

/// As real workers do.
const BEAT_EVERY: Duration = Duration::from_secs(3);
/// How long all of them may take.
const FORM_PATIENCE: Duration = Duration::from_secs(600);
const AGAIN_PAUSE: Duration = Duration::from_millis(50);
/// Between two looks whether the cluster has all of them.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// Lets so many workers register, each with connections of its own to the addresses in turn; they, and the seconds until
/// one of them hears that all are there.
pub(super) async fn form(addresses: &Arc<[String]>, workers: u32) -> anyhow::Result<(Vec<Worker>, f64)> {
    let began = Instant::now();
    let registering = stream::iter(0..workers).map(|number| {
        let at = (Arc::clone(addresses), number as usize);
        register(Worker::new(number.to_string(), Dialect::V2_10, at, LIMIT), began + FORM_PATIENCE)
    });
    let registered: Vec<anyhow::Result<Worker>> = registering.buffer_unordered(AT_ONCE).collect().await;
    let mut registered = registered.into_iter().collect::<anyhow::Result<Vec<Worker>>>()?;
    let first = registered.first_mut().context("no worker")?;
    while !first.beat().await.context("a heartbeat of a worker that is registered")? {
        ensure!(began.elapsed() < FORM_PATIENCE, "the cluster has not all workers after {FORM_PATIENCE:?}");
        tokio::time::sleep(LOOK_PAUSE).await;
    }
    Ok((registered, began.elapsed().as_secs_f64()))
}

async fn register(mut worker: Worker, deadline: Instant) -> anyhow::Result<Worker> {
    loop {
        let registered = match worker.connect().await {
            Ok(()) => worker.register().await,
            Err(failure) => Err(failure),
        };
        match registered {
            Ok(_) => return Ok(worker),
            Err(failure @ Failure::Refused(_)) => return Err(failure).context("a worker is not taken"),
            Err(failure) if Instant::now() >= deadline => {
                return Err(failure).context("a worker cannot register");
            }
            Err(_) => tokio::time::sleep(AGAIN_PAUSE).await,
        }
    }
}

/// Lets all of them only beat, and takes the leader's processor time.
pub(super) async fn rest(cluster: &Cluster, workers: Vec<Worker>, seconds: f64) -> anyhow::Result<Vec<Row>> {
    let leader = leader(cluster).await?;
    let rest = Duration::try_from_secs_f64(seconds).context("--rest-seconds")?;
    let (beats, failed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let count = workers.len();
    let mut beating = JoinSet::new();
    for (number, mut worker) in workers.into_iter().enumerate() {
        let (beats, failed) = (Arc::clone(&beats), Arc::clone(&failed));
        // Spread as the starts of real processes are.
        let offset = BEAT_EVERY.mul_f64(number as f64 / count as f64);
        beating.spawn(async move {
            tokio::time::sleep(offset).await;
            loop {
                beats.fetch_add(1, Ordering::Relaxed);
                if worker.beat().await.is_err() {
                    failed.fetch_add(1, Ordering::Relaxed);
                }
                tokio::time::sleep(BEAT_EVERY).await;
            }
        });
    }
    let before = cluster.process(leader)?.cpu_time()?;
    // What is measured is the passing of time itself; nothing is waited for.
    tokio::time::sleep(rest).await;
    let used = cluster.process(leader)?.cpu_time()? - before;
    ensure!(self::leader(cluster).await? == leader, "the measured node leads no more");
    beating.shutdown().await;
    let percent = 100.0 * used.as_secs_f64() / seconds;
    Ok(vec![
        Row::new(
            format!(
                "{count} workers only beat, one in {} s: the leader's processor time",
                BEAT_EVERY.as_secs()
            ),
            format!("{percent:.1} % of a core"),
        ),
        Row::new(
            "heartbeats that were not answered, of all".to_owned(),
            format!("{} of {}", failed.load(Ordering::Relaxed), beats.load(Ordering::Relaxed)),
        ),
    ])
}

async fn leader(cluster: &Cluster) -> anyhow::Result<u64> {
    let client = tripod_client::Client::new(&tripod_client::Config::new(cluster.endpoints()))?;
    let answers = client.status(LIMIT, false).await;
    let leads = answers.into_iter().filter_map(|answer| answer.status.ok()).map(|status| status.leader_id);
    leads.max().filter(|leader| *leader > 0).context("no node leads")
}
