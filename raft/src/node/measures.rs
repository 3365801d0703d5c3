//! What a node has measured of itself, for those who watch it.

use std::time::Duration;

use openraft::async_runtime::{Instant as _, WatchReceiver as _};
use tripod_state::ids::NodeId;

use super::Node;
use crate::apply::engine::Metrics;
use crate::base::stages::{FlushTimes, StageTimes};
use crate::lead::elections::ElectionCounts;
use crate::snapshot::SnapshotCounts;

/// Figures of one node since its process started. The default is that of a node that has done nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Measures {
    pub stages: StageTimes,
    pub flush: FlushTimes,
    /// Proposals given to this node's engine that have no outcome yet.
    pub proposals: u64,
    /// Proposals that wait on this node to be sent to the leader.
    pub forwarding: u64,
    pub elections: ElectionCounts,
    pub snapshots: SnapshotCounts,
    /// On the leader: how long ago each other member answered last. A member that never did is missing.
    pub heard: Vec<(NodeId, Duration)>,
}

/// What that node has measured until now.
pub(crate) fn of(node: &Node) -> Measures {
    let stages = node.log.stages();
    Measures {
        stages: stages.times(),
        flush: stages.flush_times(),
        proposals: stages.proposals(),
        forwarding: node.forwarder.waiting(),
        elections: node.leadership.elections(),
        snapshots: node.machine.snapshots().tally().counts(),
        heard: heard(node.options.node, &node.raft.metrics().borrow_watched()),
    }
}

/// How long ago each member answered the leader, as the engine of the leader tells.
fn heard(node: NodeId, metrics: &Metrics) -> Vec<(NodeId, Duration)> {
    let told = metrics.heartbeat.iter().flatten().filter(|(member, _)| **member != node.0);
    told.filter_map(|(member, at)| Some((NodeId(*member), at.as_ref()?.elapsed()))).collect()
}
