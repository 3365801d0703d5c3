//! A client that does nothing wrong, and notices what becomes of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use futures::future::join_all;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, timeout};
use tonic::transport::Channel;
use tripod_client::{Client, Config};
use tripod_load::connect;
use tripod_proto::tripod::v1::PutRequest;
use tripod_proto::tripod::v1::kv_client::KvClient;
use tripod_wait::deadline;

/// Between two writes through one node.
const EVERY: Duration = Duration::from_millis(50);
/// Keys of one answer when they are read back.
const PAGE_KEYS: u32 = 1_000;
const PREFIX: &str = "witness/";

/// Writes a key every 50 ms through each node, until it is asked what it saw. It has a thread of its own, as a client on
/// another machine would: what attackers in this process take of its threads is not what they take of the nodes.
#[derive(Debug)]
pub struct Witness {
    endpoints: Vec<String>,
    stop: watch::Sender<bool>,
    /// Writes that were acknowledged so far, by node.
    acknowledged: Vec<Arc<AtomicU64>>,
    writers: JoinHandle<Vec<Written>>,
}

/// What a well-behaved client saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Testimony {
    pub acknowledged: usize,
    pub failed: usize,
    /// How the first of the failed ones failed.
    pub first_failure: Option<String>,
    /// Acknowledged writes that are not there.
    pub lost: Vec<String>,
    /// Of acknowledged writes.
    pub p50: Duration,
    pub p99: Duration,
    pub longest: Duration,
}

/// What one writer was told.
#[derive(Debug, Default)]
struct Written {
    acknowledged: BTreeMap<String, Duration>,
    failed: usize,
    first_failure: Option<String>,
}

impl Witness {
    /// Begins to write through nodes at these addresses, and waits until each of them has answered.
    ///
    /// # Errors
    /// One is no address, or does not answer.
    pub async fn start(endpoints: &[String]) -> anyhow::Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let (begun, mut beginning) = mpsc::unbounded_channel();
        let acknowledged: Vec<Arc<AtomicU64>> = endpoints.iter().map(|_| Arc::default()).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let writing: Vec<_> = {
            let _inside = runtime.enter();
            let each = endpoints.iter().enumerate();
            each.map(|(number, endpoint)| {
                let count = Arc::clone(&acknowledged[number]);
                Ok(write(connect::lazy(endpoint)?, number, stopped.clone(), begun.clone(), count))
            })
            .collect::<anyhow::Result<_>>()?
        };
        drop(begun);
        let work = move || runtime.block_on(join_all(writing));
        let writers = thread::Builder::new().name("witness".to_owned()).spawn(work)?;
        for _ in endpoints {
            timeout(deadline(), beginning.recv()).await.context("a node does not answer the witness")?;
        }
        Ok(Self { endpoints: endpoints.to_vec(), stop, acknowledged, writers })
    }

    /// How many writes were acknowledged so far through the node at that place of the list.
    #[must_use]
    pub fn acknowledged_through(&self, place: usize) -> u64 {
        self.acknowledged[place].load(Ordering::Relaxed)
    }

    /// Ends its writing, and looks for every write that was acknowledged.
    ///
    /// # Errors
    /// What is there cannot be read.
    pub async fn end(self) -> anyhow::Result<Testimony> {
        self.stop.send_replace(true);
        let ended = tokio::task::spawn_blocking(|| self.writers.join()).await?;
        let mut all = Written::default();
        for written in ended.map_err(|_| anyhow::anyhow!("a writer panicked"))? {
            all.acknowledged.extend(written.acknowledged);
            all.failed += written.failed;
            all.first_failure = all.first_failure.or(written.first_failure);
        }
        let there = read_back(&self.endpoints).await?;
        let lost = all.acknowledged.keys().filter(|key| there.get(*key) != Some(&value(key)));
        let lost = lost.cloned().collect();
        let mut times: Vec<Duration> = all.acknowledged.into_values().collect();
        times.sort_unstable();
        let at = |hundredths: usize| {
            let place = (times.len() * hundredths / 100).min(times.len().saturating_sub(1));
            times.get(place).copied().unwrap_or_default()
        };
        Ok(Testimony {
            acknowledged: times.len(),
            failed: all.failed,
            first_failure: all.first_failure,
            lost,
            p50: at(50),
            p99: at(99),
            longest: at(100),
        })
    }
}

impl fmt::Display for Testimony {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acknowledged, failed, lost, p50, p99, longest, .. } = self;
        write!(f, "{acknowledged} writes acknowledged, {failed} failed, {} lost; ", lost.len())?;
        let ms = |time: &Duration| time.as_secs_f64() * 1e3;
        write!(f, "p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms", ms(p50), ms(p99), ms(longest))?;
        if let Some(why) = &self.first_failure {
            write!(f, "; the first that failed: {why}")?;
        }
        Ok(())
    }
}

async fn write(
    channel: Channel,
    writer: usize,
    mut stop: watch::Receiver<bool>,
    answered: mpsc::UnboundedSender<()>,
    acknowledged: Arc<AtomicU64>,
) -> Written {
    let mut client = KvClient::new(channel);
    let mut written = Written::default();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for number in 0_u64.. {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
        let key = format!("{PREFIX}{writer}/{number:010}");
        let request = PutRequest { key: key.clone(), value: value(&key), ..PutRequest::default() };
        let begun = Instant::now();
        let answer = timeout(deadline(), client.put(request)).await;
        if number == 0 {
            // Who started it may have given up.
            let _ = answered.send(());
        }
        match answer {
            Ok(Ok(_)) => {
                acknowledged.fetch_add(1, Ordering::Relaxed);
                written.acknowledged.insert(key, begun.elapsed());
            }
            other => {
                written.failed += 1;
                let why = other.map_or_else(|_| "no answer".to_owned(), |answer| format!("{answer:?}"));
                written.first_failure.get_or_insert(why);
            }
        }
    }
    written
}

/// What a key of the witness holds.
fn value(key: &str) -> Bytes {
    Bytes::from(format!("of {key}"))
}

async fn read_back(endpoints: &[String]) -> anyhow::Result<BTreeMap<String, Bytes>> {
    let kv = Client::new(&Config { endpoints: endpoints.to_vec(), timeout: deadline() })?.kv("");
    let (mut there, mut after) = (BTreeMap::new(), String::new());
    loop {
        let page = kv.list(PREFIX, &after, PAGE_KEYS, false).await?;
        let Some(last) = page.entries.last() else { return Ok(there) };
        after.clone_from(&last.key);
        there.extend(page.entries.into_iter().map(|entry| (entry.key, entry.value)));
        if !page.more {
            return Ok(there);
        }
    }
}
