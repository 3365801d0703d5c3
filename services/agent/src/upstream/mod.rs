//! The way to the cluster: one connection in use, to a node that can serve, and another one when it no
//! longer can.
//!
//! | module | what |
//! |---|---|
//! | `wire` | one HTTP/2 connection |
//! | `request_body` | the body of a request: whole, or in the course of the call |
//! | `link` | one connection to a node that can serve |
//! | `link_stream` | its stream of calls |
//! | `endpoints` | the nodes, in the order in which they are tried |
//! | `race` | the first of several nodes to show that it can serve |
//! | `dialer` | finds a node that can serve |
//! | `supervisor` | keeps a link, and leaves it when it must |
//! | `guard` | what goes on while a link is in use |
//! | `outage` | since when no node can serve |
//! | `plain` | connections for protocols that frame their bytes themselves |
//! | `ask` | the agent's own questions to the cluster |

mod ask;
mod dialer;
mod endpoints;
mod guard;
mod link;
mod link_stream;
mod outage;
mod plain;
mod race;
mod request_body;
mod supervisor;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, watch};
use tonic::Status;

pub(crate) use self::ask::is_own_trouble;
use self::endpoints::Endpoints;
pub(crate) use self::link::{Link, LinkId, root_cause};
use self::outage::Outages;
pub(crate) use self::plain::Plain;
pub(crate) use self::supervisor::Supervisor;
pub use self::wire::Dial;
pub(crate) use self::wire::{Reach, Wire};
use crate::config::Timing;

/// Doubts that wait to be looked into; one more says nothing new.
const DOUBTS_MAX: usize = 16;

/// Why a call doubts a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// A call failed on it.
    Failed,
    /// Its node says that it is about to stop.
    Stopping,
    /// Its node found no leader for as long as it holds calls; another one may.
    NoLeader,
}

/// The cluster as calls see it. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Upstream {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    timing: Timing,
    reach: Reach,
    current: watch::Sender<Option<Arc<Link>>>,
    outages: Outages,
    endpoints: Mutex<Endpoints>,
    doubts: mpsc::Sender<(LinkId, Doubt)>,
}

impl Upstream {
    /// The way to the cluster that `configured` names, and what has to be run to keep it open.
    pub(crate) fn new(configured: Vec<String>, timing: Timing, reach: Reach) -> (Self, Supervisor) {
        let (doubts, heard) = mpsc::channel(DOUBTS_MAX);
        let upstream = Self {
            shared: Arc::new(Shared {
                timing,
                reach,
                current: watch::Sender::new(None),
                outages: Outages::new(),
                endpoints: Mutex::new(Endpoints::new(configured)),
                doubts,
            }),
        };
        (upstream.clone(), Supervisor::new(upstream, heard))
    }

    pub(crate) fn timing(&self) -> &Timing {
        &self.shared.timing
    }

    /// The link in use; waits while there is none.
    pub(crate) async fn link(&self) -> Arc<Link> {
        let mut current = self.shared.current.subscribe();
        let found = current.wait_for(Option::is_some).await.expect("the sender is ours");
        Arc::clone(found.as_ref().expect("waited for"))
    }

    /// The link in use, if there is one.
    pub(crate) fn current(&self) -> Option<Arc<Link>> {
        self.shared.current.borrow().clone()
    }

    /// Waits until `link` is no longer the one in use.
    pub(crate) async fn left(&self, link: &Link) {
        let mut current = self.shared.current.subscribe();
        let other = |now: &Option<Arc<Link>>| now.as_ref().is_none_or(|now| now.id != link.id);
        current.wait_for(other).await.expect("the sender is ours");
    }

    /// Waits a moment before the next attempt, or until there is another link.
    pub(crate) async fn pause(&self, link: &Link, pause: &mut Duration) {
        // Either way the next attempt asks which link is in use.
        let _ = tokio::time::timeout(*pause, self.left(link)).await;
        *pause = (*pause * 2).min(self.shared.timing.pause_max);
    }

    /// Has `link` looked into.
    pub(crate) fn doubt(&self, link: &Link, doubt: Doubt) {
        // When the queue is full the supervisor is about to look anyway.
        let _ = self.shared.doubts.try_send((link.id, doubt));
    }

    /// The cluster has answered: it can serve.
    pub(crate) fn heard(&self) {
        self.shared.outages.end();
    }

    /// Waits until no node could serve for as long as calls are held, and gives the answer that calls
    /// get then.
    pub(crate) async fn given_up(&self) -> Status {
        let away = self.shared.outages.lasting(self.shared.timing.max_outage).await;
        self.unavailable(away)
    }

    /// The same, if it is so now.
    pub(crate) fn is_given_up(&self) -> Option<Status> {
        let away = self.outage()?;
        (away >= self.shared.timing.max_outage).then(|| self.unavailable(away))
    }

    /// How long no node has been able to serve; `None` when one can.
    pub(crate) fn outage(&self) -> Option<Duration> {
        self.shared.outages.lasts_for()
    }

    /// How many outages have begun.
    pub(crate) fn outages(&self) -> u64 {
        self.shared.outages.count()
    }

    fn unavailable(&self, away: Duration) -> Status {
        let (nodes, failures) = {
            let endpoints = self.endpoints();
            (endpoints.order().join(","), endpoints.failures())
        };
        Status::unavailable(format!(
            "no node of the cluster could serve for {} s: {failures}; next: `tripod status --endpoints {nodes}`",
            away.as_secs()
        ))
    }

    /// For a moment only: never across a wait.
    fn endpoints(&self) -> MutexGuard<'_, Endpoints> {
        self.shared.endpoints.lock()
    }
}
