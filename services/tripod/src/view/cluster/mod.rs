//! The cluster as all its nodes together tell it.
//!
//! | module | what |
//! |---|---|
//! | `node` | one row |
//! | `quorum` | whether enough voters are there |
//! | `safety` | how many nodes may be lost, whether a change of members is safe, which jobs wait |
//! | `forming` | a cluster that is not there yet |
//! | `digest` | whether the nodes hold the same |
//! | `indexes` | log indexes as they are shown |
//! | `trouble` | what is wrong, and the next command |

mod digest;
mod forming;
mod indexes;
mod node;
mod quorum;
mod safety;
mod trouble;

use serde::Serialize;
use tripod_client::NodeAnswer;
use tripod_state::identity::Mode as Protection;

use crate::output::{self, Table};
use crate::view::count;
use crate::view::time::now_ms;
use forming::FormingView;
use node::NodeView;
use quorum::QuorumView;
use trouble::Trouble;

/// What `status` prints. A contract: fields may be added, never renamed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ClusterView {
    /// `null` when no node answered.
    cluster_id: Option<String>,
    leader: Option<u64>,
    term: u64,
    quorum: QuorumView,
    nodes: Vec<NodeView>,
    /// Nodes of a first start that wait for others; absent: the cluster is there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    forming: Vec<FormingView>,
    /// So many voters may be lost before nothing can be written any more.
    tolerance: usize,
    /// Whether a change of members is safe now, and why not.
    change_safe: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    change_unsafe_because: String,
    /// Jobs of which tasks have waited for others for more than a minute, and the one that has waited longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs_waiting: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_job: Option<String>,
    /// Empty: the cluster is healthy.
    troubles: Vec<Trouble>,
    /// What is said of these.
    #[serde(skip)]
    lines: Vec<String>,
    /// A change of members is under way.
    #[serde(skip)]
    is_changing: bool,
    /// Where the log begins; rows are shown without it.
    #[serde(skip)]
    base: u64,
}

impl ClusterView {
    /// Puts the answers together. The node with the highest term that knows a leader is believed, unless
    /// neither that leader answers nor a quorum: a follower whose leader is gone goes on naming it until
    /// another is elected.
    pub(crate) fn of(answers: &[NodeAnswer], with_digest: bool) -> Self {
        let told: Vec<_> = answers.iter().filter_map(|answer| answer.status.as_ref().ok()).collect();
        let quorum = QuorumView::of(&told);
        let named = told.iter().filter(|status| status.leader_id != 0).max_by_key(|status| status.term);
        let leader = named
            .map(|status| status.leader_id)
            .filter(|leader| !quorum.is_lost() || told.iter().any(|status| status.node_id == *leader));
        let mut nodes: Vec<NodeView> = Vec::new();
        for node in answers.iter().map(|answer| NodeView::of(answer, &told, with_digest)) {
            // A node may have been asked at two addresses, one of which it does not know to be its own.
            if node.id().is_none() || nodes.iter().all(|known| known.id() != node.id()) {
                nodes.push(node);
            }
        }
        nodes.extend(node::unasked(&nodes, &told));
        nodes.sort_by_key(NodeView::place);
        let forming = FormingView::all(&told);
        if leader.is_none() && forming.is_empty() {
            nodes.iter_mut().filter(|node| node.state == "ok").for_each(|node| node.state = "no-leader");
        }
        let is_changing = safety::is_changing(&told);
        let safety = safety::of(&nodes, (leader.is_some(), is_changing), None);
        let waiting = safety::jobs_line(&told);
        let is_there = quorum.voters > 0 && forming.is_empty();
        let mut lines: Vec<String> = is_there.then(|| safety.line()).into_iter().collect();
        lines.extend(waiting.as_ref().map(|(_, _, line)| line.clone()));
        let mut view = Self {
            cluster_id: told.first().map(|status| status.cluster_id.clone()),
            leader,
            term: told.iter().map(|status| status.term).max().unwrap_or(0),
            quorum,
            nodes,
            forming,
            tolerance: safety.tolerance,
            change_safe: safety.change_safe,
            change_unsafe_because: safety.why,
            jobs_waiting: waiting.as_ref().map(|(count, _, _)| *count),
            waiting_job: waiting.map(|(_, job, _)| job),
            troubles: Vec::new(),
            lines,
            is_changing,
            base: indexes::base(&told),
        };
        view.troubles = trouble::find(&mut view);
        view
    }

    pub(crate) fn anybody_answered(&self) -> bool {
        self.cluster_id.is_some()
    }

    /// Why nothing can be changed in this cluster, and what to do: nobody answers, or nobody leads. `None`: somebody
    /// leads.
    pub(crate) fn standstill(&self) -> Option<(&str, &str)> {
        if self.leader.is_some() {
            return None;
        }
        self.troubles.first().map(Trouble::parts)
    }

    /// Whether nothing is wrong that could be seen.
    pub(crate) fn is_healthy(&self) -> bool {
        self.anybody_answered() && self.troubles.is_empty()
    }

    pub(crate) fn render(&self) -> String {
        let digests = self.nodes.iter().any(|node| node.digest.is_some());
        let columns: Vec<&str> = node::COLUMNS.into_iter().chain(digests.then_some(node::DIGEST)).collect();
        let mut table = Table::new(&columns);
        self.nodes.iter().for_each(|node| table.row(node.cells(self.base, digests)));
        let mut text = format!("{}\n{}", self.headline(), table.render());
        for line in self.below_the_table() {
            text.push('\n');
            text.push_str(&line);
        }
        for trouble in &self.troubles {
            text.push_str("\n\n");
            text.push_str(&trouble.render());
        }
        text
    }

    /// How many nodes may be lost, and whether a change of members is safe now that takes out the node `leaving`.
    pub(crate) fn safety_line(&self, leaving: Option<u64>) -> String {
        safety::of(&self.nodes, (self.leader.is_some(), self.is_changing), leaving).line()
    }

    fn below_the_table(&self) -> Vec<String> {
        // The calls that wait on a node which knows no cluster are its own.
        let furthest = self.nodes.iter().max_by_key(|node| node.applied_index);
        let holds = furthest.and_then(NodeView::holds).filter(|_| self.quorum.voters > 0);
        let backups = self.nodes.iter().filter_map(|node| {
            let line = node.backups.as_ref()?.line(now_ms(), |index| indexes::shown(index, self.base));
            Some(format!("backups of node {}: {line}", node.id()?))
        });
        let authorising = self.nodes.iter().filter_map(|node| {
            let mode = output::text(node.authorise.as_deref()?);
            Some(format!("node {} authorises calls: {mode}", node.id()?))
        });
        let protection = self.nodes.iter().filter_map(|node| {
            let (own, floor) = (node.protection.as_deref()?, node.floor.as_deref()?);
            let is_below = match (own.parse::<Protection>(), floor.parse::<Protection>()) {
                (Ok(own), Ok(floor)) => own < floor,
                _ => true,
            };
            let below = if is_below { ", BELOW IT (T1523)" } else { "" };
            let (own, floor) = (output::text(own), output::text(floor));
            Some(format!("node {} is protected as {own}, the floor is {floor}{below}", node.id()?))
        });
        let digests = digest::compare(&self.nodes).render(self.base);
        self.lines
            .iter()
            .cloned()
            .chain(holds)
            .chain(self.insecure())
            .chain(backups)
            .chain(authorising)
            .chain(protection)
            .chain(digests)
            .chain(indexes::legend(self.base))
            .collect()
    }

    /// Which nodes other machines may use without any proof.
    fn insecure(&self) -> Option<String> {
        let insecure = self.nodes.iter().filter(|node| node.insecure == Some(true));
        let ids: Vec<String> = insecure.filter_map(|node| Some(node.id()?.to_string())).collect();
        let nodes = match ids.len() {
            0 => return None,
            1 => "node",
            _ => "nodes",
        };
        Some(format!(
            "insecure: {nodes} {} may be used in plain text from other machines (--insecure)",
            ids.join(", ")
        ))
    }

    fn headline(&self) -> String {
        let name = output::text(self.cluster_id.as_deref().unwrap_or("unknown"));
        let leader = self.leader.map_or_else(|| "none known".to_owned(), |leader| format!("node {leader}"));
        let QuorumView { voters, learners, needed, answering } = self.quorum;
        let voters = count(voters, "voter");
        let listeners = match learners {
            0 => String::new(),
            learners => format!(", {}", count(learners, "learner")),
        };
        let health = match self.troubles.len() {
            _ if !self.anybody_answered() => "unreachable".to_owned(),
            _ if !self.forming.is_empty() => return format!("cluster {name}  forming"),
            0 => "healthy".to_owned(),
            troubles => count(troubles, "trouble"),
        };
        format!(
            "cluster {name}  leader {leader}  term {}  {voters}{listeners}  quorum {needed}, {answering} \
             answer  {health}",
            self.term
        )
    }
}

/// The client addresses of members that are not among those asked.
pub(crate) fn not_asked(answers: &[NodeAnswer], asked: &[String]) -> Vec<String> {
    let mut more = Vec::new();
    for status in answers.iter().filter_map(|answer| answer.status.as_ref().ok()) {
        for address in status.members.iter().map(|member| &member.client_address) {
            if !address.is_empty() && !more.contains(address) && !asked.contains(address) {
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
mod tests;
