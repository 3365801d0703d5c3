//! Writers that remember what they were promised, and look afterwards whether it was kept.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tripod_load::connect;
use tripod_load::system::{Freshness, System};
use tripod_wait::deadline;

use crate::cluster::Cluster;

/// How long one write may take until its fate counts as unknown.
const WRITE_TIMEOUT: Duration = Duration::from_secs(3);
/// Pause of a writer whose node does not answer.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// Keys that a writer uses in turn.
const KEYS: u64 = 64;
/// Keys that are read at the same time at the end.
const READERS: usize = 32;

/// What a key must and may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Promise {
    /// The highest number whose write was acknowledged; 0: none.
    acknowledged: u64,
    /// The highest number that was ever sent.
    sent: u64,
}

#[derive(Debug, Default)]
struct Ledger {
    promises: BTreeMap<String, Promise>,
    acknowledged: u64,
    unknown: u64,
}

/// Writers at work. Dropping it ends them.
#[derive(Debug)]
pub struct Witness {
    writers: JoinSet<()>,
    ledger: Arc<Mutex<Ledger>>,
}

/// What became of the promises.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Writes that were acknowledged.
    pub acknowledged: u64,
    /// Writes that may have happened or not.
    pub unknown: u64,
    /// Keys that were read.
    pub keys: usize,
    /// In words: what was promised and what was found.
    pub broken: Vec<String>,
}

impl Witness {
    /// Starts `writers` writers on all nodes of the cluster, each with one write of `value_bytes` bytes under
    /// way. Their keys begin with `name`, which is used once in the cluster's life.
    #[must_use]
    pub fn start(cluster: &Cluster, name: &str, writers: usize, value_bytes: usize) -> Self {
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let mut tasks = JoinSet::new();
        for writer in 0..writers {
            let (system, endpoints) = (cluster.system(), cluster.endpoints());
            let prefix = format!("{name}/{writer}");
            tasks.spawn(write(system, endpoints, prefix, writer, value_bytes, ledger.clone()));
        }
        Self { writers: tasks, ledger }
    }

    /// Acknowledged writes so far.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.ledger.lock().acknowledged
    }

    /// Waits until `count` more writes are acknowledged than now.
    ///
    /// # Errors
    /// Not within `patience`.
    pub async fn wait_for_more(&self, count: u64, patience: Duration) -> anyhow::Result<()> {
        let wanted = self.acknowledged() + count;
        let deadline = tokio::time::Instant::now() + patience;
        while self.acknowledged() < wanted {
            let now = self.acknowledged();
            let late = tokio::time::Instant::now() >= deadline;
            anyhow::ensure!(!late, "{now} writes acknowledged after {patience:?}, {wanted} wanted");
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        Ok(())
    }

    /// Ends the writers and reads every key through every running node. The cluster must be ready.
    ///
    /// # Errors
    /// A key cannot be read: that is no verdict.
    pub async fn verify(mut self, cluster: &mut Cluster) -> anyhow::Result<Verdict> {
        self.writers.shutdown().await;
        let ledger = std::mem::take(&mut *self.ledger.lock());
        let mut verdict = Verdict {
            acknowledged: ledger.acknowledged,
            unknown: ledger.unknown,
            keys: ledger.promises.len(),
            broken: Vec::new(),
        };
        let promises: Vec<_> = ledger.promises.into_iter().collect();
        for node in cluster.running() {
            let client = cluster.system().client(connect::lazy(&cluster.endpoint(node))?);
            let mut reads = JoinSet::new();
            for part in promises.chunks(promises.len().div_ceil(READERS).max(1)) {
                let (mut client, part) = (client.clone(), part.to_vec());
                reads.spawn(async move {
                    let mut broken = Vec::new();
                    for (key, promise) in part {
                        let read = client.get(key.clone(), Freshness::Linearizable);
                        let found = tokio::time::timeout(deadline(), read).await.context("no answer")?;
                        let found =
                            found.with_context(|| format!("cannot read {key} through node {node}"))?;
                        broken.extend(judge(&key, promise, found.as_ref(), node));
                    }
                    anyhow::Ok(broken)
                });
            }
            while let Some(read) = reads.join_next().await {
                verdict.broken.extend(read??);
            }
        }
        Ok(verdict)
    }
}

fn judge(key: &str, promise: Promise, found: Option<&Bytes>, node: u64) -> Option<String> {
    let Promise { acknowledged, sent } = promise;
    let number = found.map_or(Some(0), |value| value.get(..8)?.try_into().ok().map(u64::from_be_bytes));
    let kept = number.is_some_and(|number| (acknowledged..=sent).contains(&number));
    let found = number.map_or_else(|| "something else".to_owned(), |number| number.to_string());
    (!kept)
        .then(|| format!("{key}: {acknowledged} acknowledged, {sent} sent, {found} read through node {node}"))
}

/// One writer. A number whose fate is unknown may be written at any later time, so the writer goes on with
/// new keys then: nothing later can be hidden by it.
async fn write(
    system: System,
    endpoints: Vec<String>,
    prefix: String,
    writer: usize,
    value_bytes: usize,
    ledger: Arc<Mutex<Ledger>>,
) {
    let channels = endpoints.iter().map(|address| connect::lazy(address).expect("an address of ours"));
    let mut clients: Vec<_> = channels.map(|channel| system.client(channel)).collect();
    let (mut at, mut set) = (writer % endpoints.len(), 0);
    for number in 1_u64.. {
        let key = format!("{prefix}/{set}/{}", number % KEYS);
        ledger.lock().promises.entry(key.clone()).or_default().sent = number;
        let mut value = number.to_be_bytes().to_vec();
        value.resize(value_bytes.max(8), 0x5a);
        let put = clients[at].put(key.clone(), value.into());
        if let Ok(Ok(())) = tokio::time::timeout(WRITE_TIMEOUT, put).await {
            let mut ledger = ledger.lock();
            ledger.acknowledged += 1;
            ledger.promises.entry(key).or_default().acknowledged = number;
            continue;
        }
        ledger.lock().unknown += 1;
        set += 1;
        at = (at + 1) % endpoints.len();
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_promised_and_sent_is_right() {
        let promise = Promise { acknowledged: 5, sent: 7 };
        let value = |number: u64| Bytes::from(number.to_be_bytes().to_vec());
        for right in 5..=7 {
            assert_eq!(judge("k", promise, Some(&value(right)), 1), None);
        }
        for wrong in [4, 8] {
            assert!(judge("k", promise, Some(&value(wrong)), 1).is_some());
        }
        assert!(judge("k", promise, None, 1).is_some());
        assert!(judge("k", promise, Some(&Bytes::from_static(b"x")), 1).is_some());
        assert_eq!(judge("k", Promise { acknowledged: 0, sent: 3 }, None, 1), None);
    }
}
