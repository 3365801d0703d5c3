//! A leader that cannot lead gives up. It would otherwise hold the cluster: as long as its heartbeats
//! go out nobody else is elected, although nothing that needs its own disk, or an answer of its
//! followers, is ever done.
//!
//! Two things make a leader unfit, both measured by one election timeout, the longest time after which a
//! follower that hears nothing would have stood: its disk does not answer, or no quorum does. The rule
//! is in [`judge`], the task that applies it here. What follows from a verdict: [`SendGate`] holds messages
//! back, [`leadership`](crate::lead::leadership) says that this node does not lead, and that ends the
//! timers of the layer above, so nothing expires by the word of a leader that was away. openraft itself
//! pauses the heartbeats of a leader without a quorum, and tries again after a pause, so that one whose
//! followers come back need not be elected anew.

mod judge;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use openraft::ServerState;
use openraft::async_runtime::{Instant as _, WatchReceiver as _};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tripod_state::ids::NodeId;

use crate::apply::engine::Raft;
use crate::base::options::Options;
use crate::lead::hand_over::HandOver;
use crate::lead::leadership::Unfit;
use crate::log::Flushes;
use crate::peers::send_gate::{Flow, SendGate};

use judge::{Judge, NodeView};

/// How often this node gave up leading, since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GivenUp {
    /// Because its disk did not answer.
    pub disk_stalled: u64,
    /// Because no quorum answered.
    pub no_quorum: u64,
}

/// What is known of this node's fitness to lead. Clones tell the same.
#[derive(Debug, Clone)]
pub(crate) struct Fitness {
    unfit: watch::Sender<Option<Unfit>>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    disk_stalled: AtomicU64,
    no_quorum: AtomicU64,
}

impl Fitness {
    pub(crate) fn new() -> Self {
        Self { unfit: watch::Sender::new(None), counts: Arc::default() }
    }

    /// Why this node must not lead, as it changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Unfit>> {
        self.unfit.subscribe()
    }

    pub(crate) fn given_up(&self) -> GivenUp {
        GivenUp {
            disk_stalled: self.counts.disk_stalled.load(Ordering::Relaxed),
            no_quorum: self.counts.no_quorum.load(Ordering::Relaxed),
        }
    }

    fn tell(&self, unfit: Option<Unfit>) -> bool {
        self.unfit.send_if_modified(|current| {
            let changed = *current != unfit;
            *current = unfit;
            changed
        })
    }
}

/// What the watching task looks at and acts on.
pub(crate) struct Watcher {
    pub(crate) node: NodeId,
    pub(crate) raft: Raft,
    pub(crate) flushes: Flushes,
    pub(crate) send_gate: SendGate,
    pub(crate) hand_over: HandOver,
    pub(crate) fitness: Fitness,
}

impl Watcher {
    /// Judges as often as a leader sends heartbeats, until the node stops.
    pub(crate) async fn run(self, options: Options, stop: CancellationToken) {
        let patience = Duration::from_millis(options.timing.election_max.0);
        let mut ticks = tokio::time::interval(Duration::from_millis(options.timing.heartbeat.0.max(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut judge = Judge::new(patience);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = stop.cancelled() => return,
            }
            let now = Instant::now();
            let unfit = judge.look(now, self.view(now));
            if self.fitness.tell(unfit) {
                self.act(unfit, patience);
            }
        }
    }

    fn view(&self, now: Instant) -> NodeView {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let voters = metrics.membership_config.membership().voter_ids().count();
        let leads = metrics.state == ServerState::Leader;
        NodeView {
            // One that is the whole quorum has nobody to give up for.
            term_led: (leads && voters > 1).then_some(metrics.current_term),
            hands_over: self.hand_over.is_pending(),
            acknowledged: metrics.last_quorum_acked.map(|at| now - at.elapsed()),
            flush: self.flushes.under_way(),
        }
    }

    fn act(&self, unfit: Option<Unfit>, patience: Duration) {
        let node = self.node.0;
        let patience_ms = patience.as_millis();
        match unfit {
            None => {
                self.send_gate.set(Flow::Open);
                tracing::info!(node, "nothing keeps this node from leading any more");
            }
            Some(Unfit::DiskStalled) => {
                self.send_gate.set(Flow::Shut);
                self.counts().disk_stalled.fetch_add(1, Ordering::Relaxed);
                tracing::error!(
                    node,
                    patience_ms,
                    "T3202 leader-stalled: the disk did not answer for an election timeout; this node stops \
                     leading until it does; look at the disk of its data directory"
                );
            }
            Some(Unfit::NoQuorum) => {
                self.send_gate.set(Flow::Heartbeats);
                self.counts().no_quorum.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(
                    node,
                    patience_ms,
                    "T3203 leader-unheard: no quorum answered within an election timeout; this node stops \
                     leading until one does; look at the other nodes and the network between them"
                );
            }
        }
    }

    fn counts(&self) -> &Counts {
        &self.fitness.counts
    }
}
