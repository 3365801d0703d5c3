//! A program that counts in the cluster while an operator works, and must not notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tripod_client::{Client, Condition, Config, Consistency};
use tripod_wait::{deadline, until_blocking};

use crate::site::Site;

/// It counts as fast as it can.
pub(crate) struct Program {
    runtime: Runtime,
    client: Client,
    stop: Arc<AtomicBool>,
    counting: JoinHandle<u64>,
}

impl Program {
    pub(crate) fn start(endpoints: &[String]) -> Self {
        let runtime = Runtime::new().expect("threads");
        let config = Config { endpoints: endpoints.to_vec(), timeout: deadline() };
        let client = Client::new(&config).expect("good addresses");
        let stop = Arc::new(AtomicBool::new(false));
        let counting = runtime.spawn({
            let (kv, stop) = (client.kv(""), stop.clone());
            async move {
                let mut last = 0;
                while !stop.load(Ordering::Relaxed) {
                    let value = (last + 1).to_string().into();
                    kv.put("count", value, Condition::Always).await.expect("no write fails");
                    last += 1;
                }
                last
            }
        });
        Self { runtime, client, stop, counting }
    }

    /// Waits until it has counted on: nothing stands still.
    pub(crate) fn goes_on(&self) {
        self.counts(2);
    }

    /// Waits until it has counted so many more.
    pub(crate) fn counts(&self, more: u64) {
        let read = || {
            let kv = self.client.kv("");
            let found =
                self.runtime.block_on(async move { kv.get("count", Consistency::Linearizable).await });
            let value = found.expect("readable").map(|entry| entry.value);
            value.and_then(|value| String::from_utf8(value.to_vec()).ok()?.parse::<u64>().ok()).unwrap_or(0)
        };
        let before = read();
        until_blocking("a program that counts on", || (read() >= before + more).then_some(()));
    }

    /// Ends it; what it counted must be there, through whatever nodes there are now.
    pub(crate) fn end(self, site: &Site) {
        let last = self.stop();
        assert_eq!(site.look("tripod kv get count").trim(), last.to_string());
    }

    /// Ends it; gives what it counted last, of which no write failed.
    pub(crate) fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let last = self.runtime.block_on(self.counting).expect("no write failed");
        assert!(last > 10, "it hardly counted: {last}");
        last
    }
}
