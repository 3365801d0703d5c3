//! A node's view of itself, from openraft's metrics.

use openraft::ServerState;
use tripod_state::ids::{LogIndex, NodeId, Term};

use crate::divergence::Comparisons;
use crate::handle::{Leadership, MemberStatus, Role, Status};
use crate::options::Options;
use crate::types::{LogId, Metrics};

/// The public form of the metrics.
pub(crate) fn of(options: &Options, metrics: &Metrics, leadership: Leadership, applied: u64) -> Status {
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
        role: role(metrics.state),
        term: Term(metrics.current_term),
        leader: leadership.leader,
        last_log: LogIndex(metrics.last_log_index.unwrap_or(0)),
        committed: index(metrics.local_committed),
        applied: LogIndex(applied),
        snapshot: index(metrics.snapshot),
        purged: index(metrics.purged),
        members,
        // The engine knows nothing of it.
        comparisons: Comparisons::default(),
    }
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
