//! Finding a node that can serve.

use std::sync::atomic::{AtomicU64, Ordering};

use super::link::{Link, LinkId};
use super::{Upstream, race};

/// Opens links.
#[derive(Debug)]
pub(crate) struct Dialer {
    upstream: Upstream,
    opened: AtomicU64,
}

impl Dialer {
    pub(crate) fn new(upstream: Upstream) -> Self {
        Self { upstream, opened: AtomicU64::new(0) }
    }

    /// Tries all nodes until one can serve.
    pub(crate) async fn any(&self) -> Link {
        let mut pause = self.upstream.timing().pause_min;
        loop {
            let order = self.upstream.endpoints().order();
            if let Some(link) = self.first_of(order).await {
                return link;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(self.upstream.timing().pause_max);
        }
    }

    /// Tries all nodes but one, once each.
    pub(crate) async fn other_than(&self, address: &str) -> Option<Link> {
        let mut others = self.upstream.endpoints().order();
        others.retain(|other| other != address);
        self.first_of(others).await
    }

    async fn first_of(&self, addresses: Vec<String>) -> Option<Link> {
        let timing = *self.upstream.timing();
        let dial = |address: String| {
            let id = LinkId(self.opened.fetch_add(1, Ordering::Relaxed));
            let reach = self.upstream.shared.reach.clone();
            async move { Link::open(id, &address, &timing, &reach).await.map_err(|cause| (address, cause)) }
        };
        let failed = |(address, cause): race::Failure| {
            tracing::debug!(address, cause, "node cannot serve");
            self.upstream.endpoints().failed(&address, cause);
        };
        race::first(addresses, timing.head_start, dial, failed).await
    }
}
