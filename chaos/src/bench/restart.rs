//! From the start of a process to its first answer.

use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;
use tripod_load::connect;
use tripod_load::system::{Freshness, System};

/// How long a restarted node may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// One attempt; the next one follows at once.
const ATTEMPT: Duration = Duration::from_secs(1);
/// Pause between two attempts: the resolution of the figure.
const PAUSE: Duration = Duration::from_millis(5);

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
