//! The cluster, as this node sees it.

use serde_json::{Value, json};
use tripod_gateway::{Gateway, Role};
use tripod_state::State;

/// Out of what the node counts and the members that the state knows.
pub(crate) fn look(gateway: &Gateway, state: &State) -> Value {
    let status = gateway.admin().status();
    let measures = gateway.admin().measures();
    let announced = state.members();
    let member = |member: &tripod_gateway::MemberStatus| {
        let at = announced.iter().find(|(node, _)| *node == member.node).map(|(_, at)| at);
        let heard = measures.heard.iter().find(|(node, _)| *node == member.node);
        json!({
            "node": member.node.0,
            "peer": member.peer,
            "voter": member.voter,
            "client": at.map(|at| &at.client),
            "http": at.map(|at| &at.http),
            "drained": state.is_drained(member.node),
            // Both are known on the leader only.
            "lag": member.matched.map(|index| status.last_log.0.saturating_sub(index.0)),
            "heard_ms_ago": heard.map(|(_, ago)| milliseconds(*ago)),
        })
    };
    json!({
        "id": status.cluster_id,
        "node": status.node.0,
        "role": role(status.role),
        "term": status.term.0,
        "leader": status.leader.map(|leader| leader.0),
        "level": state.level().0,
        "members": status.members.iter().map(member).collect::<Vec<_>>(),
        "sessions": state.sessions_open(),
        "state_bytes": state.bytes(),
        "waiting_calls": gateway.waiting_calls(),
        "held_calls": gateway.held_calls(),
        "connections": gateway.connections().count(),
        "flush_p99_ms": measures.flush.p99.map(milliseconds),
        "disk_free_bytes": status.disk.free_bytes,
        "disk_full": status.disk.full,
        "growth_refused": status.growth_refused,
        "divergence": status.comparisons.alarm,
        "forming": status.forming.map(|nodes| nodes.iter().map(|node| node.0).collect::<Vec<_>>()),
    })
}

fn milliseconds(length: std::time::Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
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
