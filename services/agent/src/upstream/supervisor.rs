//! Keeps a link, and leaves it when it must.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::dialer::Dialer;
use super::guard::{self, Trouble};
use super::link::{Link, LinkId};
use super::{Doubt, Upstream};

/// A link that lasted for less than this counts as a failure, and the next one waits a little longer: a
/// node that is stopping, and is known by two names, would be left for itself again and again.
const SHORT_LIFE: Duration = Duration::from_secs(1);

/// What keeps the way to the cluster open, as long as it runs.
#[derive(Debug)]
pub(crate) struct Supervisor {
    upstream: Upstream,
    dialer: Dialer,
    doubts: mpsc::Receiver<(LinkId, Doubt)>,
}

/// How the use of a link ended.
enum Ending {
    /// It is broken.
    Lost(String),
    /// It works, but its node does not serve, and the one of this link does.
    Better(Link),
}

impl Supervisor {
    pub(crate) fn new(upstream: Upstream, doubts: mpsc::Receiver<(LinkId, Doubt)>) -> Self {
        Self { dialer: Dialer::new(upstream.clone()), upstream, doubts }
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(mut self) {
        let mut next = None;
        let mut pause = self.upstream.timing().pause_min;
        loop {
            let link = match next.take() {
                Some(better) => Arc::new(better),
                None => Arc::new(self.dialer.any().await),
            };
            self.install(&link);
            match self.watch_over(&link).await {
                Ending::Better(better) => next = Some(better),
                Ending::Lost(cause) => self.lose(&link, &cause),
            }
            if link.since.elapsed() >= SHORT_LIFE {
                pause = self.upstream.timing().pause_min;
                continue;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(self.upstream.timing().pause_max);
        }
    }

    /// Moves all calls to `link`.
    fn install(&self, link: &Arc<Link>) {
        self.upstream.endpoints().succeeded(&link.address);
        let before = self.upstream.shared.current.send_replace(Some(Arc::clone(link)));
        let from = before.map(|before| before.address.clone()).unwrap_or_default();
        tracing::info!(address = link.address, from, "upstream changed");
        self.upstream.heard();
    }

    fn lose(&self, link: &Link, cause: &str) {
        self.upstream.endpoints().failed(&link.address, cause.to_owned());
        self.upstream.shared.current.send_replace(None);
        tracing::info!(address = link.address, cause, "upstream lost");
        self.upstream.shared.outages.begin(cause);
    }

    async fn watch_over(&mut self, link: &Link) -> Ending {
        let trouble = watch::Sender::new(Trouble::None);
        tokio::select! {
            cause = guard::follow_members(&self.upstream, link, &trouble) => Ending::Lost(cause),
            better = guard::seek(&self.upstream, &self.dialer, link, &trouble) => Ending::Better(better),
            cause = guard::keep_probing(&self.upstream, &mut self.doubts, link, &trouble) => Ending::Lost(cause),
        }
    }
}
