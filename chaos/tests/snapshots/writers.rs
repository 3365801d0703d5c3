//! Clients that write without pause, and remember what was acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;
use tripod_load::connect;
use tripod_load::system::{Client, Freshness, System};
use tripod_processes::cluster::Cluster;

/// After a call that failed.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// A key that one writer counted up, one number a write.
#[derive(Debug)]
struct Key {
    name: String,
    /// The highest number that was acknowledged.
    acknowledged: u64,
    /// The highest number that was sent.
    sent: u64,
}

/// Running writers.
pub(crate) struct Writers {
    tasks: JoinSet<Vec<Key>>,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
}

/// What they had written when they were stopped.
pub(crate) struct Written(Vec<Key>);

impl Writers {
    /// Starts `count` writers, which use the nodes at `endpoints` in turn.
    pub(crate) fn start(system: &System, endpoints: &[String], count: usize) -> Self {
        let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut tasks = JoinSet::new();
        for (number, endpoint) in (0..count).zip(endpoints.iter().cycle()) {
            let client = system.client(connect::lazy(endpoint).unwrap());
            tasks.spawn(write(client, number, stop.clone(), acknowledged.clone()));
        }
        Self { tasks, stop, acknowledged }
    }

    /// How many writes were acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    pub(crate) async fn stop(self) -> Written {
        self.stop.store(true, Ordering::SeqCst);
        Written(self.tasks.join_all().await.into_iter().flatten().collect())
    }
}

async fn write(
    mut client: Client,
    number: usize,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
) -> Vec<Key> {
    let key = |life: usize| Key { name: format!("writer-{number}-{life}"), acknowledged: 0, sent: 0 };
    let mut keys = vec![key(0)];
    while !stop.load(Ordering::SeqCst) {
        let current = keys.last_mut().expect("there is always a last key");
        current.sent += 1;
        let value = Bytes::from(format!("{:0>100}", current.sent));
        if client.put(current.name.clone(), value).await.is_ok() {
            current.acknowledged = current.sent;
            acknowledged.fetch_add(1, Ordering::SeqCst);
        } else {
            // That write may take effect at any time, so its key can only be read, and not written any more.
            keys.push(key(keys.len()));
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
    keys
}

impl Written {
    /// Asserts that a linearizable read through `node` sees every acknowledged write.
    pub(crate) async fn assert_kept(&self, cluster: &Cluster, node: u64) {
        let mut client = cluster.system().client(connect::lazy(&cluster.endpoint(node)).unwrap());
        for key in &self.0 {
            let found = client.get(key.name.clone(), Freshness::Linearizable).await.unwrap();
            let found = found.map_or(0, |value| String::from_utf8(value.into()).unwrap().parse().unwrap());
            assert!((key.acknowledged..=key.sent).contains(&found), "through node {node}: {found}, {key:?}");
        }
    }
}
