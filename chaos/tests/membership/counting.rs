//! Clients that count, and know exactly what was acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use tokio::task::JoinSet;
use tripod_client::{Client, Condition, Config, Consistency};
use tripod_wait::{deadline, until};

/// Counters under way. Each has a key of its own, whose version is its count.
pub(crate) struct Counting {
    tasks: JoinSet<(String, u64)>,
    stop: Arc<AtomicBool>,
    counted: Arc<AtomicU64>,
}

impl Counting {
    /// Starts `count` counters, each through any of the nodes at `endpoints`.
    pub(crate) fn start(endpoints: &[String], count: usize) -> Self {
        let (stop, counted) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let mut endpoints = endpoints.to_vec();
            let first = number % endpoints.len();
            endpoints.rotate_left(first);
            // Longer than any outage here, so that no call fails for one.
            let client = Client::new(&Config { endpoints, timeout: deadline() }).unwrap();
            tasks.spawn(count_up(client, format!("counter-{number}"), stop.clone(), counted.clone()));
        }
        Self { tasks, stop, counted }
    }

    /// How many increments were acknowledged.
    pub(crate) fn counted(&self) -> u64 {
        self.counted.load(Ordering::SeqCst)
    }

    /// Waits until `more` increments were acknowledged from now on.
    pub(crate) async fn go_on(&self, more: u64) {
        let goal = self.counted() + more;
        until(format!("{more} more increments"), || (self.counted() >= goal).then_some(())).await;
    }

    /// Ends the counters and asserts that reads through each of `endpoints` see every increment, once.
    pub(crate) async fn stop_and_check(self, endpoints: &[String]) {
        self.stop.store(true, Ordering::SeqCst);
        for (key, count) in self.tasks.join_all().await {
            for endpoint in endpoints {
                let config = Config { endpoints: vec![endpoint.clone()], timeout: deadline() };
                let kv = Client::new(&config).unwrap().kv("");
                let found = kv.get(&key, Consistency::Linearizable).await.unwrap();
                let version = found.map_or(0, |entry| entry.version);
                assert_eq!(version, count, "{key} through {endpoint}");
            }
        }
    }
}

/// Writes until it is stopped; gives how often. Any failed call is a failure of the test.
async fn count_up(
    client: Client,
    key: String,
    stop: Arc<AtomicBool>,
    counted: Arc<AtomicU64>,
) -> (String, u64) {
    let kv = client.kv("");
    let mut count = 0;
    while !stop.load(Ordering::SeqCst) {
        let value = Bytes::from((count + 1).to_string());
        let written = kv.put(&key, value, Condition::Version(count)).await;
        count = written.unwrap_or_else(|error| panic!("{key} after {count}: {error}")).version;
        counted.fetch_add(1, Ordering::SeqCst);
    }
    (key, count)
}
