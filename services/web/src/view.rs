//! A node's status as JSON. The field names are those of the command line's `status`.

use serde::Serialize;
use tripod_gateway::{Role, Status};

/// What `/status` answers.
#[derive(Debug, Serialize)]
pub(crate) struct View {
    cluster_id: String,
    id: u64,
    role: &'static str,
    term: u64,
    leader: Option<u64>,
    last_log_index: u64,
    committed_index: u64,
    applied_index: u64,
    snapshot_index: u64,
    purged_index: u64,
    waiting_calls: u64,
    /// Whether other machines can use a port in plain text.
    insecure: bool,
    disk: DiskView,
    /// Why nothing may grow, if so.
    growth_refused: Option<String>,
    /// How often it gave up leading: because its disk did not answer, because no quorum did.
    given_up_disk_stalled: u64,
    given_up_no_quorum: u64,
    /// The last index at which this node's state was found to be that of a majority.
    compared_index: u64,
    comparisons_agreed: u64,
    comparisons_diverged: u64,
    divergence: Option<String>,
    members: Vec<MemberView>,
}

#[derive(Debug, Serialize)]
struct DiskView {
    directory: String,
    free_bytes: u64,
    /// Kept for votes, deletions and snapshots.
    reserve_bytes: u64,
    /// Down to the reserve.
    full: bool,
}

#[derive(Debug, Serialize)]
struct MemberView {
    id: u64,
    peer: String,
    voter: bool,
    /// Known on the leader only.
    matched_index: Option<u64>,
}

impl View {
    pub(crate) fn of(status: &Status, waiting_calls: u64, insecure: bool) -> Self {
        let members = status.members.iter().map(|member| MemberView {
            id: member.node.0,
            peer: member.peer.clone(),
            voter: member.voter,
            matched_index: member.matched.map(|index| index.0),
        });
        Self {
            cluster_id: status.cluster_id.clone(),
            id: status.node.0,
            role: role(status.role),
            term: status.term.0,
            leader: status.leader.map(|leader| leader.0),
            last_log_index: status.last_log.0,
            committed_index: status.committed.0,
            applied_index: status.applied.0,
            snapshot_index: status.snapshot.0,
            purged_index: status.purged.0,
            waiting_calls,
            insecure,
            disk: DiskView {
                directory: status.disk.directory.clone(),
                free_bytes: status.disk.free_bytes,
                reserve_bytes: status.disk.reserve_bytes,
                full: status.disk.full,
            },
            growth_refused: status.growth_refused.clone(),
            given_up_disk_stalled: status.given_up.disk_stalled,
            given_up_no_quorum: status.given_up.no_quorum,
            compared_index: status.comparisons.last.0,
            comparisons_agreed: status.comparisons.agreed,
            comparisons_diverged: status.comparisons.diverged,
            divergence: status.comparisons.alarm.clone(),
            members: members.collect(),
        }
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Leader => "leader",
        Role::Follower => "follower",
        Role::Candidate => "candidate",
        Role::Learner => "learner",
        Role::Stopped => "stopped",
    }
}
