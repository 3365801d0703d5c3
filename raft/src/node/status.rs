//! A node's view of itself, from openraft's metrics.

use openraft::ServerState;
use openraft::async_runtime::WatchReceiver as _;
use tripod_state::ids::{LogIndex, NodeId, Term};

use super::Node;
use crate::apply::engine::Metrics;
use crate::base::options::Options;
use crate::base::types::LogId;
use crate::care::divergence::Comparisons;
use crate::care::space::DiskStatus;
use crate::lead::fitness::GivenUp;
use crate::lead::leadership::Leadership;

/// What a node is at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Leader,
    Follower,
    Candidate,
    Learner,
    Stopped,
}

/// A member as this node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    pub node: NodeId,
    pub peer: String,
    pub voter: bool,
    /// On the leader: the last log index known to be on that member.
    pub matched: Option<LogIndex>,
}

/// This node's own view, from memory; needs no leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub cluster_id: String,
    pub node: NodeId,
    pub role: Role,
    pub term: Term,
    pub leader: Option<NodeId>,
    pub last_log: LogIndex,
    pub committed: LogIndex,
    pub applied: LogIndex,
    pub snapshot: LogIndex,
    pub purged: LogIndex,
    pub members: Vec<MemberStatus>,
    /// Its disk.
    pub disk: DiskStatus,
    /// Why nothing may grow, if so: decided by the leader.
    pub growth_refused: Option<String>,
    /// How often it gave up leading.
    pub given_up: GivenUp,
    /// Whether this node's state is that of the others.
    pub comparisons: Comparisons,
    /// The cluster is not formed yet: the nodes of the first start that have not answered this one. `None`: it is,
    /// or this node joined it.
    pub forming: Option<Vec<NodeId>>,
}

/// What that node is now.
pub(crate) fn of(node: &Node) -> Status {
    let options = &node.options;
    let metrics = node.raft.metrics();
    let metrics = metrics.borrow_watched();
    let leadership = node.leadership.get();
    let applied = node.machine.applied_index();
    let membership = metrics.membership_config.membership();
    let voters: Vec<u64> = membership.voter_ids().collect();
    let matched = |node: &u64| -> Option<LogIndex> {
        let replication = metrics.replication.as_ref()?;
        replication.get(node)?.as_ref().map(|id| LogIndex(id.index))
    };
    let members = membership
        .nodes()
        .map(|(node, peer)| MemberStatus {
            node: NodeId(*node),
            peer: peer.address.clone(),
            voter: voters.contains(node),
            matched: matched(node),
        })
        .collect();
    Status {
        cluster_id: options.cluster_id.clone(),
        node: options.node,
        role: if gave_up(options, &metrics, leadership) { Role::Candidate } else { role(metrics.state) },
        term: Term(metrics.current_term),
        leader: leadership.leader,
        // The metrics may be a step behind the state: what was applied is in the log, and committed.
        last_log: LogIndex(metrics.last_log_index.unwrap_or(0).max(applied)),
        committed: index(metrics.local_committed).max(LogIndex(applied)),
        applied: LogIndex(applied),
        snapshot: index(metrics.snapshot),
        purged: index(metrics.purged),
        members,
        disk: node.gauge.last(),
        growth_refused: node.admission.refusal().map(|reason| reason.to_string()),
        given_up: node.fitness.given_up(),
        comparisons: node.comparer.comparisons(),
        forming: node.forming.get().map(|nodes| nodes.into_iter().map(NodeId).collect()),
    }
}

/// Whether openraft still calls a leader what has given up leading.
fn gave_up(options: &Options, metrics: &Metrics, leadership: Leadership) -> bool {
    metrics.state == ServerState::Leader && leadership.leader != Some(options.node)
}

fn index(id: Option<LogId>) -> LogIndex {
    LogIndex(id.map_or(0, |id| id.index))
}

fn role(state: ServerState) -> Role {
    match state {
        ServerState::Learner => Role::Learner,
        ServerState::Follower => Role::Follower,
        ServerState::Candidate => Role::Candidate,
        ServerState::Leader => Role::Leader,
        ServerState::Shutdown => Role::Stopped,
    }
}
