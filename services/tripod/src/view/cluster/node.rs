//! One node, as it tells of itself, or as others tell of it.

use serde::Serialize;
use tripod_client::{NodeAnswer, wire};

use super::indexes;
use crate::view::job_ports;
use crate::view::scheduled::ScheduledView;
use crate::view::time::seconds;

/// The columns of the table.
pub(super) const COLUMNS: [&str; 9] =
    ["NODE", "ROLE", "STATE", "VERSION", "APPLIED", "LAG", "DISK p99", "SEEN", "ADDRESS"];
/// One more when hashes were asked for.
pub(super) const DIGEST: &str = "DIGEST";

/// One node. A contract: fields may be added, never renamed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct NodeView {
    /// `null` for an endpoint that did not answer and that no node knows.
    id: Option<u64>,
    /// leader, follower, candidate, learner, stopped; none: its cluster is not formed yet; unknown.
    pub(super) role: String,
    /// ok; no-leader: it answered but knows no leader; forming: it waits for others of a first start; unreachable.
    pub(super) state: &'static str,
    /// What is wrong with it, in a word, if anything is: see the troubles.
    pub(super) trouble: Option<&'static str>,
    pub(super) address: String,
    /// Where the row comes from; `null` if nobody knows anything.
    pub(super) seen: Option<SeenView>,
    pub(super) applied_index: Option<u64>,
    committed_index: Option<u64>,
    last_log_index: Option<u64>,
    snapshot_index: Option<u64>,
    /// Committed entries that it has not applied; told by the leader: that it is not known to hold; `null`: nobody knows.
    pub(super) lag_entries: Option<u64>,
    term: Option<u64>,
    pub(super) voter: Option<bool>,
    version: Option<String>,
    jobs: Option<u64>,
    keys: Option<u64>,
    waiting_calls: Option<u64>,
    /// How long its disk took for the flushes of the last minute; `null`: there were none.
    flush_p50_us: Option<u64>,
    pub(super) flush_p99_us: Option<u64>,
    /// How long the flush under way has taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) flush_under_way_ms: Option<u64>,
    /// Its disk; absent for nodes that did not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) disk: Option<DiskView>,
    /// Why nothing may grow at the moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) growth_refused: Option<String>,
    /// How often it gave up leading: because its disk did not answer, because no quorum did.
    #[serde(skip_serializing_if = "Option::is_none")]
    given_up: Option<GivenUpView>,
    /// Job ports that it cannot open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) closed_job_ports: Vec<ClosedPortView>,
    /// The last index at which its state was found to be that of a majority.
    compared_index: Option<u64>,
    /// On the leader: which states differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) divergence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
    /// The backups that it makes by itself; absent: it makes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) backups: Option<ScheduledView>,
    /// What it does with calls that their callers may not make; absent: it does not ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) authorise: Option<String>,
    /// How it is protected, if the cluster wants nodes to be protected; absent: it does not, or the node is of an older build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) protection: Option<String>,
    /// How the cluster wants nodes to be protected at least, by its word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) floor: Option<String>,
    /// Whether other machines can use a port of it in plain text; `null`: it did not tell.
    pub(super) insecure: Option<bool>,
    /// Why it is unreachable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
}

/// Who told of a node, and how old that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct SeenView {
    /// The node that told it: itself, if it was asked.
    pub(super) by: u64,
    /// How long ago that one heard it; `null`: it does not know.
    pub(super) ms_ago: Option<u64>,
}

/// The disk under a node's data directory.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct DiskView {
    pub(super) directory: String,
    pub(super) free_bytes: u64,
    reserve_bytes: u64,
    pub(super) full: bool,
}

/// How often a node gave up leading since it started.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct GivenUpView {
    disk_stalled: u64,
    no_quorum: u64,
}

/// A job port that a node cannot open.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct ClosedPortView {
    job: String,
    /// Empty: the node's range of job ports ends before the job's.
    address: String,
    reason: String,
    #[serde(skip)]
    pub(super) advice: String,
}

/// Members of whom no address is known, so that they could not be asked.
pub(super) fn unasked(known: &[NodeView], told: &[&wire::StatusResponse]) -> Vec<NodeView> {
    let Some(status) = told.iter().max_by_key(|status| (status.term, status.committed_index)) else {
        return Vec::new();
    };
    let nowhere = status.members.iter().filter(|member| member.client_address.is_empty());
    let unseen = nowhere.filter(|member| known.iter().all(|node| node.id != Some(member.node_id)));
    let why = "it has not told the others yet where it serves clients";
    unseen.map(|member| NodeView::told(&member.peer_address, Some(member.node_id), told, why)).collect()
}

impl NodeView {
    pub(super) fn of(answer: &NodeAnswer, told: &[&wire::StatusResponse], with_digest: bool) -> Self {
        match &answer.status {
            Ok(status) => Self::alive(&answer.endpoint, status, told, with_digest),
            Err(attempt) => {
                let mut members = told.iter().flat_map(|status| &status.members);
                let known = members.find(|member| member.client_address == answer.endpoint);
                let id = known.map(|member| member.node_id);
                Self::told(&answer.endpoint, id, told, &attempt.to_string())
            }
        }
    }

    pub(super) fn id(&self) -> Option<u64> {
        self.id
    }

    /// Where it stands in the table.
    pub(super) fn place(&self) -> (u64, String) {
        (self.id.unwrap_or(u64::MAX), self.address.clone())
    }

    /// Its row, with indexes counted from `base`, and its hash if that has a column.
    pub(super) fn cells(&self, base: u64, with_digest: bool) -> Vec<String> {
        let none = || "-".to_owned();
        let p99 = self.flush_p99_us.map(|micros| format!("{}.{} ms", micros / 1000, micros % 1000 / 100));
        let mut cells = vec![
            self.id.map_or_else(none, |id| id.to_string()),
            self.role.clone(),
            self.trouble.unwrap_or(self.state).to_owned(),
            self.version.clone().unwrap_or_else(none),
            self.applied_index.map_or_else(none, |index| indexes::shown(index, base)),
            self.lag_entries.map_or_else(none, grouped),
            p99.unwrap_or_else(none),
            self.seen.map_or_else(|| "never".to_owned(), |seen| seen.render(self.id)),
            self.address.clone(),
        ];
        if with_digest {
            cells.push(self.digest.clone().unwrap_or_else(none));
        }
        cells
    }

    /// What there is in the state, as this node holds it.
    pub(super) fn holds(&self) -> Option<String> {
        let (jobs, keys, calls) = (self.jobs?, self.keys?, self.waiting_calls?);
        let [jobs, keys, calls] = [jobs, keys, calls].map(grouped);
        Some(format!("jobs {jobs}  keys {keys}  calls that wait on node {}: {calls}", self.id?))
    }

    fn alive(
        address: &str,
        status: &wire::StatusResponse,
        told: &[&wire::StatusResponse],
        with_digest: bool,
    ) -> Self {
        let own = status.members.iter().find(|member| member.node_id == status.node_id);
        let measured = status.measured.unwrap_or_default();
        let comparisons = status.comparisons.as_ref();
        let forms = status.forming.is_some() && status.members.is_empty();
        let state = match status.leader_id {
            _ if forms => "forming",
            0 => "no-leader",
            _ => "ok",
        };
        Self {
            id: Some(status.node_id),
            // The engine calls a node a learner that knows no members.
            role: if forms { "none".to_owned() } else { status.role.clone() },
            state,
            trouble: None,
            address: address.to_owned(),
            seen: Some(SeenView { by: status.node_id, ms_ago: Some(0) }),
            applied_index: Some(status.applied_index),
            committed_index: Some(status.committed_index),
            last_log_index: Some(status.last_log_index),
            snapshot_index: Some(status.snapshot_index),
            lag_entries: Some(indexes::lag(told, status.applied_index)),
            term: Some(status.term),
            voter: own.map(|member| member.voter),
            version: Some(status.version.clone()),
            jobs: Some(status.jobs),
            keys: Some(status.keys),
            // Before its cluster is there only its own tasks call.
            waiting_calls: Some(status.waiting_calls).filter(|_| !forms),
            flush_p50_us: measured.flush_p50_us,
            flush_p99_us: measured.flush_p99_us,
            flush_under_way_ms: measured.flush_under_way_ms,
            disk: status.disk.as_ref().map(DiskView::of),
            growth_refused: Some(status.growth_refused.clone()).filter(|why| !why.is_empty()),
            given_up: GivenUpView::of(status),
            closed_job_ports: ClosedPortView::all(status),
            compared_index: comparisons.map(|comparisons| comparisons.last_index),
            divergence: comparisons.map(|told| told.alarm.clone()).filter(|alarm| !alarm.is_empty()),
            digest: with_digest.then(|| format!("{:016x}", status.digest)),
            backups: status.backups.as_ref().map(ScheduledView::of),
            authorise: Some(status.authorise.clone()).filter(|mode| !["", "off"].contains(&mode.as_str())),
            protection: floor(status).map(|_| status.protection.clone()),
            floor: floor(status).map(str::to_owned),
            insecure: Some(status.insecure),
            why: None,
        }
    }

    /// One that did not answer: what the leader knows of it, if there is one.
    fn told(address: &str, id: Option<u64>, told: &[&wire::StatusResponse], why: &str) -> Self {
        let about = |status: &wire::StatusResponse| {
            status.members.iter().find(|member| Some(member.node_id) == id).cloned()
        };
        let leads = |status: &&&wire::StatusResponse| status.leader_id == status.node_id;
        let leader = told.iter().filter(leads).max_by_key(|status| status.term);
        let by_leader = leader.and_then(|leader| Some((leader.node_id, about(leader)?)));
        let by_any = told.iter().find_map(|status| Some((status.node_id, about(status)?)));
        // 0: it has told this leader nothing yet.
        let matched = by_leader.as_ref().map(|(_, member)| member.matched_index).filter(|index| *index > 0);
        let lag = matched.map(|index| indexes::lag(told, index));
        let (seen, voter) = match by_leader.or(by_any) {
            None => (None, None),
            Some((by, member)) => (Some(SeenView { by, ms_ago: member.heard_ms_ago }), Some(member.voter)),
        };
        Self {
            id,
            role: "unknown".to_owned(),
            state: "unreachable",
            trouble: None,
            address: address.to_owned(),
            seen,
            applied_index: None,
            committed_index: None,
            last_log_index: None,
            snapshot_index: None,
            lag_entries: lag,
            term: None,
            voter,
            version: None,
            jobs: None,
            keys: None,
            waiting_calls: None,
            flush_p50_us: None,
            flush_p99_us: None,
            flush_under_way_ms: None,
            disk: None,
            growth_refused: None,
            given_up: None,
            closed_job_ports: Vec::new(),
            compared_index: None,
            divergence: None,
            digest: None,
            backups: None,
            authorise: None,
            protection: None,
            floor: None,
            insecure: None,
            why: Some(why.to_owned()),
        }
    }
}

/// What the cluster wants of nodes, by this one's word; `None`: nothing.
fn floor(status: &wire::StatusResponse) -> Option<&str> {
    Some(status.floor.as_str()).filter(|floor| !["", "off"].contains(floor))
}

/// A number with a comma at each thousand.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl SeenView {
    /// For the row of node `of`.
    fn render(self, of: Option<u64>) -> String {
        match self.ms_ago {
            _ if Some(self.by) == of => "now".to_owned(),
            Some(ms) => format!("{} ago, by node {}", seconds(ms), self.by),
            None => format!("listed by node {}", self.by),
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
    fn all(status: &wire::StatusResponse) -> Vec<Self> {
        let view = |port: &wire::ClosedJobPort| Self {
            job: port.job.clone(),
            address: port.address.clone(),
            reason: port.reason.clone(),
            advice: job_ports::trouble(status.node_id, port),
        };
        status.closed_job_ports.iter().map(view).collect()
    }
}
