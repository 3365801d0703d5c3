//! The cluster as all its nodes together tell it.

use serde::Serialize;
use tripod_client::{NodeAnswer, wire};

use crate::output::Table;
use crate::view::job_ports::trouble;
use crate::view::scheduled::ScheduledView;
use crate::view::time::now_ms;

/// What `status` prints. A contract: fields may be added, never renamed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ClusterView {
    /// `null` when no node answered.
    cluster_id: Option<String>,
    leader: Option<u64>,
    term: u64,
    nodes: Vec<NodeView>,
}

/// One node.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct NodeView {
    /// `null` for an endpoint that did not answer and that no node knows.
    id: Option<u64>,
    /// leader, follower, candidate, learner, stopped; unknown.
    role: String,
    /// ok; no-leader: it answered but knows no leader; unreachable.
    state: &'static str,
    address: String,
    applied_index: Option<u64>,
    committed_index: Option<u64>,
    last_log_index: Option<u64>,
    snapshot_index: Option<u64>,
    term: Option<u64>,
    voter: Option<bool>,
    version: Option<String>,
    jobs: Option<u64>,
    keys: Option<u64>,
    waiting_calls: Option<u64>,
    /// Its disk; absent for nodes that did not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<DiskView>,
    /// Why nothing may grow at the moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    growth_refused: Option<String>,
    /// How often it gave up leading: because its disk did not answer, because no quorum did.
    #[serde(skip_serializing_if = "Option::is_none")]
    given_up: Option<GivenUpView>,
    /// Job ports that it cannot open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    closed_job_ports: Vec<ClosedPortView>,
    /// The last index at which its state was found to be that of a majority.
    compared_index: Option<u64>,
    /// On the leader: which states differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    divergence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// The backups that it makes by itself; absent: it makes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    backups: Option<ScheduledView>,
    /// Why it is unreachable.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// The disk under a node's data directory.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct DiskView {
    directory: String,
    free_bytes: u64,
    reserve_bytes: u64,
    full: bool,
}

/// How often a node gave up leading since it started.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct GivenUpView {
    disk_stalled: u64,
    no_quorum: u64,
}

/// A job port that a node cannot open.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct ClosedPortView {
    job: String,
    /// Empty: the node's range of job ports ends before the job's.
    address: String,
    reason: String,
    #[serde(skip)]
    advice: String,
}

impl ClusterView {
    /// Puts the answers together. The node with the highest term that knows a leader is believed.
    pub(crate) fn of(answers: &[NodeAnswer], with_digest: bool) -> Self {
        let told: Vec<_> = answers.iter().filter_map(|answer| answer.status.as_ref().ok()).collect();
        let leader = told.iter().filter(|status| status.leader_id != 0).max_by_key(|status| status.term);
        let mut nodes: Vec<_> =
            answers.iter().map(|answer| NodeView::of(answer, &told, with_digest)).collect();
        nodes.sort_by_key(|node| (node.id.unwrap_or(u64::MAX), node.address.clone()));
        Self {
            cluster_id: told.first().map(|status| status.cluster_id.clone()),
            leader: leader.map(|status| status.leader_id),
            term: told.iter().map(|status| status.term).max().unwrap_or(0),
            nodes,
        }
    }

    pub(crate) fn anybody_answered(&self) -> bool {
        self.cluster_id.is_some()
    }

    /// Why each node did not answer.
    pub(crate) fn reasons(&self) -> String {
        let reasons = self.nodes.iter().filter_map(|node| node.why.clone());
        reasons.collect::<Vec<_>>().join("; ")
    }

    pub(crate) fn render(&self) -> String {
        let text = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let leader = self.leader.map_or_else(|| "none known".to_owned(), |leader| format!("node {leader}"));
        let name = self.cluster_id.as_deref().unwrap_or("unknown");
        let mut table = Table::new(&[
            "NODE", "ROLE", "STATE", "ADDRESS", "TERM", "APPLIED", "COMPARED", "VERSION", "WHY",
        ]);
        for node in &self.nodes {
            table.row(vec![
                text(node.id),
                node.role.clone(),
                node.state.to_owned(),
                node.address.clone(),
                text(node.term),
                text(node.applied_index),
                text(node.compared_index),
                node.version.clone().unwrap_or_else(|| "-".to_owned()),
                node.why.clone().unwrap_or_default(),
            ]);
        }
        let mut text = format!("cluster {name}  leader {leader}  term {}\n{}", self.term, table.render());
        for node in &self.nodes {
            if let (Some(id), Some(trouble)) =
                (node.id, node.backups.as_ref().and_then(|told| told.trouble(now_ms())))
            {
                text.push_str(&format!("\n\nnode {id}: {trouble}"));
            }
        }
        // Every node tells the leader's word; once is enough.
        if let Some(refused) = self.nodes.iter().find_map(|node| node.growth_refused.as_ref()) {
            text.push_str("\n\n");
            text.push_str(refused);
        }
        for alarm in self.nodes.iter().filter_map(|node| node.divergence.as_ref()) {
            text.push_str("\n\n");
            text.push_str(alarm);
        }
        for port in self.nodes.iter().flat_map(|node| &node.closed_job_ports) {
            text.push_str("\n\n");
            text.push_str(&port.advice);
        }
        text
    }
}

impl NodeView {
    fn of(answer: &NodeAnswer, told: &[&wire::StatusResponse], with_digest: bool) -> Self {
        match &answer.status {
            Ok(status) => Self::alive(&answer.endpoint, status, with_digest),
            Err(attempt) => {
                let members = told.iter().flat_map(|status| &status.members);
                let known = members.into_iter().find(|member| member.client_address == answer.endpoint);
                Self::dead(&answer.endpoint, known, &attempt.to_string())
            }
        }
    }

    fn alive(address: &str, status: &wire::StatusResponse, with_digest: bool) -> Self {
        let own = status.members.iter().find(|member| member.node_id == status.node_id);
        Self {
            id: Some(status.node_id),
            role: status.role.clone(),
            state: if status.leader_id == 0 { "no-leader" } else { "ok" },
            address: address.to_owned(),
            applied_index: Some(status.applied_index),
            committed_index: Some(status.committed_index),
            last_log_index: Some(status.last_log_index),
            snapshot_index: Some(status.snapshot_index),
            term: Some(status.term),
            voter: own.map(|member| member.voter),
            version: Some(status.version.clone()),
            jobs: Some(status.jobs),
            keys: Some(status.keys),
            waiting_calls: Some(status.waiting_calls),
            disk: status.disk.as_ref().map(DiskView::of),
            growth_refused: Some(status.growth_refused.clone()).filter(|why| !why.is_empty()),
            given_up: GivenUpView::of(status),
            closed_job_ports: status
                .closed_job_ports
                .iter()
                .map(|port| ClosedPortView::of(status, port))
                .collect(),
            compared_index: status.comparisons.as_ref().map(|comparisons| comparisons.last_index),
            divergence: status
                .comparisons
                .as_ref()
                .map(|comparisons| comparisons.alarm.clone())
                .filter(|alarm| !alarm.is_empty()),
            digest: with_digest.then(|| format!("{:016x}", status.digest)),
            backups: status.backups.as_ref().map(ScheduledView::of),
            why: None,
        }
    }

    fn dead(address: &str, known: Option<&wire::Member>, why: &str) -> Self {
        Self {
            id: known.map(|member| member.node_id),
            role: "unknown".to_owned(),
            state: "unreachable",
            address: address.to_owned(),
            applied_index: None,
            committed_index: None,
            last_log_index: None,
            snapshot_index: None,
            term: None,
            voter: known.map(|member| member.voter),
            version: None,
            jobs: None,
            keys: None,
            waiting_calls: None,
            disk: None,
            growth_refused: None,
            given_up: None,
            closed_job_ports: Vec::new(),
            compared_index: None,
            divergence: None,
            digest: None,
            backups: None,
            why: Some(why.to_owned()),
        }
    }
}

impl DiskView {
    fn of(disk: &wire::Disk) -> Self {
        Self {
            directory: disk.directory.clone(),
            free_bytes: disk.free_bytes,
            reserve_bytes: disk.reserve_bytes,
            full: disk.full,
        }
    }
}

impl GivenUpView {
    /// `None` for a node that never did.
    fn of(status: &wire::StatusResponse) -> Option<Self> {
        let (disk_stalled, no_quorum) = (status.given_up_disk_stalled, status.given_up_no_quorum);
        (disk_stalled + no_quorum > 0).then_some(Self { disk_stalled, no_quorum })
    }
}

impl ClosedPortView {
    fn of(status: &wire::StatusResponse, port: &wire::ClosedJobPort) -> Self {
        Self {
            job: port.job.clone(),
            address: port.address.clone(),
            reason: port.reason.clone(),
            advice: trouble(status.node_id, port),
        }
    }
}

/// The client addresses of members that were not among those asked.
pub(crate) fn not_asked(answers: &[NodeAnswer]) -> Vec<String> {
    let mut more = Vec::new();
    for status in answers.iter().filter_map(|answer| answer.status.as_ref().ok()) {
        for address in status.members.iter().map(|member| &member.client_address) {
            let known = address.is_empty()
                || more.contains(address)
                || answers.iter().any(|answer| answer.endpoint == *address);
            if !known {
                more.push(address.clone());
            }
        }
    }
    more
}

/// The client addresses of all members, in order of node id, as whoever knows most of them tells.
pub(crate) fn client_addresses(answers: &[NodeAnswer]) -> Vec<String> {
    let told = answers.iter().filter_map(|answer| answer.status.as_ref().ok());
    let mut members = told.map(|status| status.members.clone()).max_by_key(Vec::len).unwrap_or_default();
    members.sort_by_key(|member| member.node_id);
    members.retain(|member| !member.client_address.is_empty());
    members.into_iter().map(|member| member.client_address).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tripod_client::{Attempt, Phase};

    use super::*;

    fn member(id: u64) -> wire::Member {
        wire::Member {
            node_id: id,
            client_address: format!("127.0.0.1:770{}", id - 1),
            voter: true,
            ..Default::default()
        }
    }

    fn alive(id: u64, term: u64, leader: u64) -> NodeAnswer {
        let status = wire::StatusResponse {
            cluster_id: "dev-1".into(),
            node_id: id,
            role: if id == leader { "leader" } else { "follower" }.into(),
            term,
            leader_id: leader,
            applied_index: 40 + id,
            version: "0.1.0".into(),
            members: (1..=3).map(member).collect(),
            ..Default::default()
        };
        NodeAnswer { endpoint: format!("127.0.0.1:770{}", id - 1), status: Ok(status) }
    }

    fn dead(id: u64) -> NodeAnswer {
        let endpoint = format!("127.0.0.1:770{}", id - 1);
        let attempt =
            Attempt { endpoint: endpoint.clone(), phase: Phase::Connect, cause: "Connection refused".into() };
        NodeAnswer { endpoint, status: Err(attempt) }
    }

    #[test]
    fn a_dead_node_keeps_its_id_and_says_why() {
        let view = ClusterView::of(&[dead(1), alive(2, 7, 3), alive(3, 7, 3)], false);
        let json = serde_json::to_value(&view).expect("JSON");
        assert_eq!(json["cluster_id"], "dev-1");
        assert_eq!(json["leader"], 3);
        assert_eq!(json["term"], 7);
        assert_eq!(json["nodes"][0]["id"], 1);
        assert_eq!(json["nodes"][0]["state"], "unreachable");
        assert_eq!(json["nodes"][0]["why"], "127.0.0.1:7700: connect: Connection refused");
        assert_eq!(json["nodes"][0]["applied_index"], json!(null));
        assert_eq!(json["nodes"][2]["role"], "leader");
        assert_eq!(json["nodes"][2]["address"], "127.0.0.1:7702");
        assert_eq!(json["nodes"][2]["applied_index"], 43);
    }

    #[test]
    fn the_highest_term_is_believed_about_the_leader() {
        let view = ClusterView::of(&[alive(1, 4, 1), alive(2, 5, 2), alive(3, 5, 2)], false);
        assert_eq!((view.leader, view.term), (Some(2), 5));
    }

    #[test]
    fn a_port_that_cannot_be_opened_is_one_line_of_what_is_wrong() {
        let mut troubled = alive(1, 7, 3);
        let port = wire::ClosedJobPort {
            job_id: 5,
            job: "train".into(),
            address: "127.0.0.1:8000".into(),
            reason: "taken".into(),
        };
        troubled.status.as_mut().expect("told").closed_job_ports.push(port);
        let view = ClusterView::of(&[troubled, alive(2, 7, 3)], false);
        let text = view.render();
        let last = text.lines().last().expect("lines");
        assert!(last.starts_with("node 1 cannot open 127.0.0.1:8000 for job `train`: taken"), "{text}");
        let json = serde_json::to_value(&view).expect("JSON");
        let expected = json!([{ "job": "train", "address": "127.0.0.1:8000", "reason": "taken" }]);
        assert_eq!(json["nodes"][0]["closed_job_ports"], expected);
        assert_eq!(json["nodes"][1].get("closed_job_ports"), None);
    }

    #[test]
    fn a_divergent_state_is_told_below_the_table() {
        let mut leader = alive(3, 7, 3);
        leader.status.as_mut().expect("told").comparisons = Some(wire::Comparisons {
            last_index: 41,
            alarm: "T3112 state-diverged: the state of node 2 differs".into(),
            ..Default::default()
        });
        let view = ClusterView::of(&[alive(2, 7, 3), leader], false);
        let text = view.render();
        assert!(text.ends_with("\n\nT3112 state-diverged: the state of node 2 differs"), "{text}");
        let json = serde_json::to_value(&view).expect("JSON");
        assert_eq!(json["nodes"][1]["compared_index"], 41);
        assert_eq!(json["nodes"][0].get("divergence"), None);
    }

    #[test]
    fn without_a_leader_the_field_is_null_and_nodes_say_so() {
        let view = ClusterView::of(&[alive(1, 9, 0), dead(2), dead(3)], false);
        let json = serde_json::to_value(&view).expect("JSON");
        assert_eq!(json["leader"], json!(null));
        assert_eq!(json["nodes"][0]["state"], "no-leader");
        assert!(view.anybody_answered());
    }

    #[test]
    fn nobody_answering_is_told_with_every_reason() {
        let view = ClusterView::of(&[dead(1), dead(2)], false);
        assert!(!view.anybody_answered());
        assert_eq!(view.reasons().matches("Connection refused").count(), 2);
    }

    #[test]
    fn addresses_of_clients_are_told_in_order_of_node() {
        let mut answer = alive(1, 1, 1);
        answer.status.as_mut().expect("told").members.reverse();
        assert_eq!(
            client_addresses(&[dead(3), answer]),
            ["127.0.0.1:7700", "127.0.0.1:7701", "127.0.0.1:7702"]
        );
        assert!(client_addresses(&[dead(3)]).is_empty());
    }

    #[test]
    fn members_that_were_not_asked_are_found_once() {
        assert_eq!(not_asked(&[alive(1, 1, 1)]), ["127.0.0.1:7701", "127.0.0.1:7702"]);
        assert!(not_asked(&[alive(1, 1, 1), alive(2, 1, 1), dead(3)]).is_empty());
    }
}
