//! A fake node: a server at a place of lines, so that it can be frozen and killed as a process can.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tonic::transport::Server;
use tripod_lines::Frozen;

use super::cluster::Cluster;
use super::service::FakeService;
use crate::support::lines;

/// What becomes of heartbeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BeatConduct {
    Answer,
    /// They get no answer, and neither does anything else that needs a leader.
    Silence,
    /// They are answered, and what needs a leader after this time.
    Late(Duration),
    Refuse(&'static str),
    Outage(&'static str),
}

/// How a node behaves.
#[derive(Debug, Clone)]
pub(crate) struct Conduct {
    pub(crate) beats: BeatConduct,
    /// A command of this method is executed and not answered.
    pub(crate) swallow: Option<&'static str>,
    /// Every client's call is answered with this trouble of the node.
    pub(crate) outage: Option<&'static str>,
    /// Whether it knows streams of calls.
    pub(crate) has_streams: bool,
    /// Whether it knows sets of heartbeats.
    pub(crate) has_sets: bool,
}

/// What the services of a node share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) node: usize,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) conduct: Arc<Mutex<Conduct>>,
    pub(crate) stopping: Arc<watch::Sender<bool>>,
    /// Goodbyes that were said by its streams.
    pub(crate) goodbyes: Arc<watch::Sender<u64>>,
    /// Counts how often its streams were ended.
    pub(crate) breaks: Arc<watch::Sender<u64>>,
}

/// A running node.
pub(crate) struct Node {
    pub(crate) address: String,
    shared: Shared,
    alive: Option<AbortHandle>,
}

impl Node {
    /// Starts node `node`, which is no other node's number.
    pub(crate) fn start(cluster: &Arc<Cluster>, node: usize) -> Self {
        let conduct = Conduct {
            beats: BeatConduct::Answer,
            swallow: None,
            outage: None,
            has_streams: false,
            has_sets: false,
        };
        let shared = Shared {
            node,
            cluster: Arc::clone(cluster),
            conduct: Arc::new(Mutex::new(conduct)),
            stopping: Arc::new(watch::Sender::new(false)),
            goodbyes: Arc::new(watch::Sender::new(0)),
            breaks: Arc::new(watch::Sender::new(0)),
        };
        let mut node = Self { address: format!("node-{node}:7700"), shared, alive: None };
        node.revive();
        node
    }

    /// Serves again at the same address.
    pub(crate) fn revive(&mut self) {
        let serving = Server::builder()
            .max_concurrent_streams(u32::MAX)
            .serve_with_incoming(FakeService::new(self.shared.clone()), lines().listen(&self.address));
        self.alive = Some(tokio::spawn(serving).abort_handle());
    }

    /// Ends the node: its connections break.
    pub(crate) fn kill(&mut self) {
        if let Some(alive) = self.alive.take() {
            lines().close(&self.address);
            alive.abort();
        }
    }

    /// Stops the node from doing anything until what is returned is dropped.
    pub(crate) fn freeze(&self) -> Frozen {
        lines().freeze(&self.address)
    }

    pub(crate) fn behave(&self, change: impl FnOnce(&mut Conduct)) {
        change(&mut self.shared.conduct.lock());
    }

    /// The same as [`Self::start`], with streams of calls.
    pub(crate) fn with_streams(cluster: &Arc<Cluster>, number: usize) -> Self {
        let node = Self::start(cluster, number);
        node.behave(|conduct| conduct.has_streams = true);
        node
    }

    /// Says goodbye by its streams, and nowhere else.
    pub(crate) fn say_goodbye(&self) {
        self.shared.goodbyes.send_modify(|count| *count += 1);
    }

    /// Ends its streams, and nothing else.
    pub(crate) fn break_streams(&self) {
        self.shared.breaks.send_modify(|count| *count += 1);
    }

    /// Says that it is about to stop.
    pub(crate) fn announce_stop(&self) {
        self.shared.stopping.send_replace(true);
    }
}
