//! Clients that count through the cluster, and know exactly what was acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use tokio::task::JoinSet;
use tripod_client::{Client, Condition, Config, Consistency, Kv};

use crate::wait;

/// Longer than any outage here, so that no call fails for one.
const CALL_LIMIT: Duration = Duration::from_secs(60);
/// Between two increments of a counter: mistakes are looked for, not throughput.
const PACE: Duration = Duration::from_millis(5);

/// Counters under way. Each has a key of job `default`, whose version is its count. Dropping it ends them.
pub struct Counting {
    tasks: JoinSet<Result<()>>,
    counters: Vec<Counter>,
    stop: Arc<AtomicBool>,
}

/// One counter, seen from outside.
#[derive(Clone)]
struct Counter {
    key: String,
    acknowledged: Arc<AtomicU64>,
    /// The increment that took longest since somebody looked, in milliseconds.
    longest_ms: Arc<AtomicU64>,
}

impl Counting {
    /// Starts `count` counters, each through any of the nodes at `endpoints`, and each with another one
    /// first.
    ///
    /// # Errors
    /// An endpoint is no `HOST:PORT`.
    pub fn start(endpoints: &[String], count: usize) -> Result<Self> {
        ensure!(!endpoints.is_empty(), "counters need a node");
        let mut counting =
            Self { tasks: JoinSet::new(), counters: Vec::new(), stop: Arc::new(AtomicBool::new(false)) };
        for number in 0..count {
            let mut endpoints = endpoints.to_vec();
            let first = number % endpoints.len();
            endpoints.rotate_left(first);
            let kv = Client::new(&Config { endpoints, timeout: CALL_LIMIT })?.kv("");
            let counter = Counter {
                key: format!("counter-{number}"),
                acknowledged: Arc::default(),
                longest_ms: Arc::default(),
            };
            counting.tasks.spawn(counter.clone().count_up(kv, Arc::clone(&counting.stop)));
            counting.counters.push(counter);
        }
        Ok(counting)
    }

    /// Waits until every counter has counted twice: one of these increments began after this call.
    ///
    /// # Errors
    /// Not within `limit`, or an increment failed.
    pub async fn go_on(&mut self, limit: Duration) -> Result<()> {
        let goals: Vec<u64> = self.counters.iter().map(|counter| counter.count() + 2).collect();
        wait::until("two increments of every counter", limit, || {
            if let Some(ended) = self.tasks.try_join_next() {
                ended.context("a counter panicked")??;
                bail!("a counter has stopped by itself");
            }
            let reached = self.counters.iter().zip(&goals).all(|(counter, goal)| counter.count() >= *goal);
            Ok(reached.then_some(()))
        })
        .await
    }

    /// How many increments were acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.counters.iter().map(Counter::count).sum()
    }

    /// The increment that took longest of those that ended since the last look, in milliseconds.
    #[must_use]
    pub fn take_longest_ms(&self) -> u64 {
        let longest = self.counters.iter().map(|counter| counter.longest_ms.swap(0, Ordering::SeqCst));
        longest.max().unwrap_or_default()
    }

    /// Ends the counters, and reads through each of `endpoints` whether every increment that was acknowledged
    /// is there, once; how many they were.
    ///
    /// # Errors
    /// It is not, or an increment failed, or a node does not answer.
    pub async fn stop_and_check(mut self, endpoints: &[String]) -> Result<u64> {
        self.stop.store(true, Ordering::SeqCst);
        while let Some(ended) = self.tasks.join_next().await {
            ended.context("a counter panicked")??;
        }
        for endpoint in endpoints {
            let config = Config { endpoints: vec![endpoint.clone()], timeout: CALL_LIMIT };
            let kv = Client::new(&config)?.kv("");
            for Counter { key, acknowledged, .. } in &self.counters {
                let wanted = acknowledged.load(Ordering::SeqCst);
                let found = kv.get(key, Consistency::Linearizable).await?;
                let found = found.with_context(|| format!("{key} is gone, through {endpoint}"))?;
                let is_so = found.version == wanted && found.value == wanted.to_string();
                ensure!(is_so, "{key} is {found:?} through {endpoint}, and {wanted} were acknowledged");
            }
        }
        Ok(self.acknowledged())
    }
}

impl Counter {
    fn count(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Counts until it is stopped. It ends with the first call that fails or counts wrongly.
    async fn count_up(self, kv: Kv, stop: Arc<AtomicBool>) -> Result<()> {
        while !stop.load(Ordering::SeqCst) {
            let before = self.count();
            let next = before + 1;
            let begin = Instant::now();
            let written = kv.put(&self.key, Bytes::from(next.to_string()), Condition::Version(before)).await;
            let written = written.with_context(|| format!("{} failed after {before}", self.key))?;
            ensure!(written.version == next, "{} went from {before} to {}", self.key, written.version);
            let took_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.longest_ms.fetch_max(took_ms, Ordering::SeqCst);
            self.acknowledged.store(next, Ordering::SeqCst);
            tokio::time::sleep(PACE).await;
        }
        Ok(())
    }
}
