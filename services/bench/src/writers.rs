//! Writers on every node, who remember what was acknowledged, and when.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tripod_load::connect;
use tripod_load::system::{Client, Freshness, System};

/// Writers at each node.
const PER_NODE: usize = 4;
/// A write that is not acknowledged by then is given up; the next one has another key. Short, so that
/// a system which lets calls hang during an election is not charged for it.
const WRITE_TIMEOUT: Duration = Duration::from_millis(100);
/// Every writer is more patient than the one before it by this much, or they would all try again at
/// the same moments and the pause would be measured in steps of the timeout.
const WRITE_TIMEOUT_STEP: Duration = Duration::from_millis(17);
/// Pause between two writes: the pause of a failover is measured, not the throughput.
const WRITE_PAUSE: Duration = Duration::from_millis(1);
/// Pause between two looks at the acknowledgements.
const LOOK_PAUSE: Duration = Duration::from_millis(10);
/// How long a read of the check may take.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Readers of the check.
const READERS: usize = 32;

/// An acknowledged write. The value is the key, so each is unique.
#[derive(Debug, Clone)]
pub(super) struct Acknowledged {
    pub(super) key: String,
    writer: usize,
    begun: Instant,
    ended: Instant,
}

/// Running writers; they stop when this is dropped.
pub(super) struct Writers {
    acknowledged: Arc<Mutex<Vec<Acknowledged>>>,
    tasks: JoinSet<()>,
    nodes: usize,
}

impl Writers {
    /// Starts writers at all `endpoints`, with keys below `folder`.
    pub(super) fn start(system: &System, endpoints: &[String], folder: &str) -> anyhow::Result<Self> {
        let acknowledged = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        for (writer, address) in endpoints.iter().cycle().take(endpoints.len() * PER_NODE).enumerate() {
            let client = system.client(connect::lazy(address)?);
            tasks.spawn(write(client, folder.to_owned(), writer, Arc::clone(&acknowledged)));
        }
        Ok(Self { acknowledged, tasks, nodes: endpoints.len() })
    }

    /// Waits until all writers, but those at the node `except` (by position), have had `count`
    /// acknowledgements of writes that they began after `since`.
    pub(super) async fn wait_for(
        &self,
        count: usize,
        since: Instant,
        except: Option<usize>,
        patience: Duration,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + patience;
        while !self.all_have(count, since, except) {
            anyhow::ensure!(Instant::now() < deadline, "writers are not acknowledged within {patience:?}");
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        Ok(())
    }

    /// Stops the writers; what was acknowledged, in the order of acknowledgement.
    pub(super) async fn stop(mut self) -> Vec<Acknowledged> {
        self.tasks.shutdown().await;
        let mut acknowledged = self.lock().clone();
        acknowledged.sort_by_key(|write| write.ended);
        acknowledged
    }

    fn all_have(&self, count: usize, since: Instant, except: Option<usize>) -> bool {
        let mut counts = vec![0; self.nodes * PER_NODE];
        for write in self.lock().iter().filter(|write| write.begun >= since) {
            counts[write.writer] += 1;
        }
        counts
            .iter()
            .enumerate()
            .all(|(writer, acknowledged)| except == Some(writer % self.nodes) || *acknowledged >= count)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Acknowledged>> {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write(
    mut client: Client,
    folder: String,
    writer: usize,
    acknowledged: Arc<Mutex<Vec<Acknowledged>>>,
) {
    let patience = WRITE_TIMEOUT + WRITE_TIMEOUT_STEP * u32::try_from(writer).unwrap_or(0);
    for number in 0_u64.. {
        let key = format!("{folder}/{writer}/{number}");
        let begun = Instant::now();
        let answer = tokio::time::timeout(patience, client.put(key.clone(), Bytes::from(key.clone()))).await;
        if matches!(answer, Ok(Ok(()))) {
            let write = Acknowledged { key, writer, begun, ended: Instant::now() };
            acknowledged.lock().unwrap_or_else(PoisonError::into_inner).push(write);
        }
        tokio::time::sleep(WRITE_PAUSE).await;
    }
}

/// The longest time without an acknowledgement that ended after `since`.
pub(super) fn longest_gap(acknowledged: &[Acknowledged], since: Instant) -> Option<Duration> {
    let gaps = acknowledged.windows(2).filter(|pair| pair[1].ended >= since);
    gaps.map(|pair| pair[1].ended - pair[0].ended).max()
}

/// The same, of those that ended by `until`.
pub(super) fn longest_gap_until(
    acknowledged: &[Acknowledged],
    since: Instant,
    until: Instant,
) -> Option<Duration> {
    let end = acknowledged.partition_point(|write| write.ended <= until);
    longest_gap(&acknowledged[..end], since)
}

/// Reads every acknowledged write back, through all `endpoints` in turn; the keys that are lost.
pub(super) async fn find_lost(
    system: &System,
    endpoints: &[String],
    acknowledged: &[Acknowledged],
) -> anyhow::Result<Vec<String>> {
    let mut readers = JoinSet::new();
    for reader in 0..READERS {
        let mut client = system.client(connect::lazy(&endpoints[reader % endpoints.len()])?);
        let keys: Vec<String> =
            acknowledged.iter().skip(reader).step_by(READERS).map(|write| write.key.clone()).collect();
        readers.spawn(async move {
            let mut lost = Vec::new();
            for key in keys {
                let read = client.get(key.clone(), Freshness::Linearizable);
                let read = tokio::time::timeout(READ_TIMEOUT, read).await.context("a read hangs")?;
                if read.context("cannot read back")?.as_deref() != Some(key.as_bytes()) {
                    lost.push(key);
                }
            }
            anyhow::Ok(lost)
        });
    }
    let mut lost = Vec::new();
    while let Some(found) = readers.join_next().await {
        lost.extend(found.context("a reader panicked")??);
    }
    Ok(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_around_the_kill_counts_also_when_it_began_before() {
        let start = Instant::now();
        let at = |millis| Acknowledged {
            key: String::new(),
            writer: 0,
            begun: start,
            ended: start + Duration::from_millis(millis),
        };
        let writes: Vec<Acknowledged> = [0, 900, 1000, 1700, 1710].map(at).into();
        let gap = |since| longest_gap(&writes, start + Duration::from_millis(since));
        assert_eq!(gap(0), Some(Duration::from_millis(900)));
        assert_eq!(gap(1005), Some(Duration::from_millis(700)));
        assert_eq!(gap(1705), Some(Duration::from_millis(10)));
        assert_eq!(gap(2000), None);
        let until = |millis| longest_gap_until(&writes, start, start + Duration::from_millis(millis));
        assert_eq!(until(950), Some(Duration::from_millis(900)));
        assert_eq!(until(10), None);
    }
}
