//! A node that is to lead nothing hands over (the driver sees to that) and does not stand for election, as long as
//! somebody else leads. When nobody does, it stands as every other: it may be the only one that has everything.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tripod_state::ids::NodeId;

use super::Members;
use crate::apply::cluster_configuration::ClusterConfiguration;
use crate::apply::engine::Engine as _;
use crate::peers::gate::Gate;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// For so many election timeouts no leader may have answered before this node stands.
const TIMEOUTS: u32 = 3;

impl Members {
    /// Whether this node is to lead nothing.
    pub(super) fn is_drained(&self) -> bool {
        self.machine.read(|state| state.is_drained(NodeId(self.calls.node())))
    }

    /// The members that are to lead nothing.
    pub(super) fn drained(&self, configuration: &ClusterConfiguration) -> BTreeSet<u64> {
        let nodes = configuration.nodes.keys().copied();
        self.machine.read(|state| nodes.filter(|node| state.is_drained(NodeId(*node))).collect())
    }

    async fn leader_answers(&self) -> bool {
        let Some(leader) = self.leadership.get().leader else { return false };
        let Ok(effective) = self.effective().await else { return false };
        match effective.configuration.nodes.get(&leader.0) {
            Some(address) => self.answers(leader.0, address).await,
            None => false,
        }
    }

    /// Keeps this node from standing for election while it is drained and somebody else leads, until it stops.
    pub(crate) async fn stand_back(self, gate: Gate, stop: CancellationToken) {
        let mut stands_back = false;
        let mut led = Instant::now();
        loop {
            let drained = self.is_drained();
            // Only its answer says that a leader is there: who was heard a moment ago may be gone.
            if drained && self.leader_answers().await {
                led = Instant::now();
            }
            let wanted = drained && !self.leadership.leads_here() && led.elapsed() < TIMEOUTS * self.patience;
            // Whoever may not vote was told before not to stand, and not by this.
            if wanted != stands_back && (wanted || gate.check_votes().is_ok()) {
                self.raft.stand_for_election(!wanted);
                stands_back = wanted;
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = stop.cancelled() => return,
            }
        }
    }
}
