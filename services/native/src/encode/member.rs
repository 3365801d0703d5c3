//! Members, votes and changes to messages.

use tripod_gateway::{MemberList, MemberView, Planned, Status, Votes};
use tripod_proto::tripod::v1 as wire;
use tripod_state::ids::NodeId;
use tripod_state::member::{Finished, Open};

use super::Members;
use crate::text;

/// The members as one node sees them.
pub(crate) fn list(status: &Status, list: &MemberList, announced: &Members) -> wire::ListMembersResponse {
    wire::ListMembersResponse {
        cluster_id: status.cluster_id.clone(),
        leader_id: status.leader.map_or(0, |leader| leader.0),
        by_leader: list.by_leader,
        members: list.members.iter().map(|member| encoded(member, announced)).collect(),
        votes: Some(votes(&list.votes)),
        open: list.open.as_ref().map(open),
        last: list.last.as_ref().map(finished),
    }
}

fn encoded(member: &MemberView, announced: &Members) -> wire::MemberSight {
    let addresses = announced.iter().find(|(node, _)| *node == member.node).map(|(_, known)| known);
    wire::MemberSight {
        node_id: member.node.0,
        peer_address: member.peer.clone(),
        client_address: addresses.map_or_else(String::new, |known| known.client.clone()),
        voter: member.voter,
        answers: member.answers,
        lag_entries: member.lag_entries,
        drained: member.drained,
        job_host: addresses.map_or_else(String::new, |known| known.job_host.clone()),
        job_port_first: addresses.map_or(0, |known| known.job_port_first.into()),
        job_port_count: addresses.map_or(0, |known| known.job_port_count.into()),
    }
}

/// What a change does, or would do.
pub(crate) fn planned(planned: &Planned) -> wire::ChangeMembersResponse {
    wire::ChangeMembersResponse {
        before: Some(votes(&planned.before)),
        after: Some(votes(&planned.after)),
        node_id: planned.node.0,
        change_id: planned.change.map_or(0, |change| change.0),
    }
}

fn votes(votes: &Votes) -> wire::Votes {
    let ids = |nodes: &[NodeId]| nodes.iter().map(|node| node.0).collect();
    wire::Votes {
        voters: ids(&votes.voters),
        learners: ids(&votes.learners),
        silent: ids(votes.silent()),
        quorum: u32::try_from(votes.quorum()).expect("a cluster has few nodes"),
    }
}

fn open(open: &Open) -> wire::MemberChange {
    wire::MemberChange {
        id: open.id.0,
        what: open.change.to_string(),
        node_id: open.node.0,
        by: open.by.clone(),
        since_ms: open.since.0,
        cancelled: open.cancelled,
        ending: String::new(),
    }
}

fn finished(finished: &Finished) -> wire::MemberChange {
    wire::MemberChange { ending: text::member::of_ending(&finished.ending), ..open(&finished.open) }
}
