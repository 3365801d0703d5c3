//! From the start of a process to its first answer, after it was killed.

use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;
use tripod_load::connect;
use tripod_load::system::{Freshness, System};

use tripod_processes::cluster::Cluster;

/// How long a restarted node may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// One attempt; the next one follows at once.
const ATTEMPT: Duration = Duration::from_secs(1);
/// Pause between two attempts: the resolution of the figure.
const PAUSE: Duration = Duration::from_millis(5);

/// How long nodes that were killed take from their start to serving.
pub(super) struct Restarts {
    /// A follower alone.
    pub(super) one: Duration,
    /// The slowest node, when all were killed at once.
    pub(super) all: Duration,
}

/// Kills and restarts a follower, and then all nodes at once. `last_key` is the one that was written last: a node
/// that reads it has everything.
pub(super) async fn kill_and_restart(cluster: &mut Cluster, last_key: &str) -> anyhow::Result<Restarts> {
    let system = cluster.system();
    let leader = cluster.wait_for_leader().await?;
    let follower = cluster.ids().find(|node| *node != leader).unwrap_or(leader);
    cluster.kill(follower)?;
    let started = Instant::now();
    cluster.restart(follower)?;
    let one = until_serving(&system, &cluster.endpoint(follower), last_key, started).await?;

    cluster.kill_all()?;
    let started = Instant::now();
    for node in cluster.ids() {
        cluster.restart(node)?;
    }
    let mut all = Duration::ZERO;
    for address in cluster.endpoints() {
        all = all.max(until_serving(&system, &address, last_key, started).await?);
    }
    Ok(Restarts { one, all })
}

/// The time from `started` until the node at `address` serves a linearizable read of `key`.
pub(super) async fn until_serving(
    system: &System,
    address: &str,
    key: &str,
    started: Instant,
) -> anyhow::Result<Duration> {
    let mut client = system.client(connect::lazy(address)?);
    loop {
        let read = tokio::time::timeout(ATTEMPT, client.get(key.to_owned(), Freshness::Linearizable)).await;
        if let Ok(Ok(found)) = read {
            found.with_context(|| format!("{address} serves without the key {key}"))?;
            return Ok(started.elapsed());
        }
        anyhow::ensure!(started.elapsed() < PATIENCE, "{address} does not serve within {PATIENCE:?}");
        tokio::time::sleep(PAUSE).await;
    }
}
