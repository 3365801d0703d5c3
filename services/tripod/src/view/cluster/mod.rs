//! The cluster as all its nodes together tell it.
//!
//! | module | what |
//! |---|---|
//! | `node` | one row |
//! | `trouble` | what is wrong, and the next command |

mod node;
mod trouble;

use serde::Serialize;
use tripod_client::{NodeAnswer, wire};

use crate::output::{self, Table};
use node::NodeView;
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
    /// Empty: the cluster is healthy.
    troubles: Vec<Trouble>,
}

/// Whether enough voters are there, as far as it can be seen from here.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct QuorumView {
    voters: usize,
    learners: usize,
    /// Voters that must be up, the leader among them.
    needed: usize,
    /// Voters that answered this command.
    answering: usize,
}

impl ClusterView {
    /// Puts the answers together. The node with the highest term that knows a leader is believed, unless
    /// neither that leader answers nor a quorum: a follower whose leader is gone goes on naming it until
    /// another is elected.
    pub(crate) fn of(answers: &[NodeAnswer], with_digest: bool) -> Self {
        let told: Vec<_> = answers.iter().filter_map(|answer| answer.status.as_ref().ok()).collect();
        let quorum = QuorumView::of(&told);
        let named = told.iter().filter(|status| status.leader_id != 0).max_by_key(|status| status.term);
        let leader = named.map(|status| status.leader_id).filter(|leader| {
            quorum.answering >= quorum.needed || told.iter().any(|status| status.node_id == *leader)
        });
        let mut nodes: Vec<NodeView> = Vec::new();
        for node in answers.iter().map(|answer| NodeView::of(answer, &told, with_digest)) {
            // A node may have been asked at two addresses, one of which it does not know to be its own.
            if node.id().is_none() || nodes.iter().all(|known| known.id() != node.id()) {
                nodes.push(node);
            }
        }
        nodes.extend(node::unasked(&nodes, &told));
        nodes.sort_by_key(NodeView::place);
        if leader.is_none() {
            nodes.iter_mut().filter(|node| node.state == "ok").for_each(|node| node.state = "no-leader");
        }
        let mut view = Self {
            cluster_id: told.first().map(|status| status.cluster_id.clone()),
            leader,
            term: told.iter().map(|status| status.term).max().unwrap_or(0),
            quorum,
            nodes,
            troubles: Vec::new(),
        };
        if view.anybody_answered() {
            view.troubles = trouble::find(&mut view);
        }
        view
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
        let mut table = Table::new(&node::COLUMNS);
        self.nodes.iter().for_each(|node| table.row(node.cells()));
        let mut text = format!("{}\n{}", self.headline(), table.render());
        if let Some(holds) = self.nodes.iter().max_by_key(|node| node.applied_index).and_then(NodeView::holds)
        {
            text.push('\n');
            text.push_str(&holds);
        }
        for trouble in &self.troubles {
            text.push_str("\n\n");
            text.push_str(&trouble.render());
        }
        text
    }

    fn headline(&self) -> String {
        let name = output::text(self.cluster_id.as_deref().unwrap_or("unknown"));
        let leader = self.leader.map_or_else(|| "none known".to_owned(), |leader| format!("node {leader}"));
        let QuorumView { voters, learners, needed, answering } = self.quorum;
        let listeners = match learners {
            0 => String::new(),
            1 => ", 1 learner".to_owned(),
            learners => format!(", {learners} learners"),
        };
        let health = match self.troubles.len() {
            _ if !self.anybody_answered() => "unreachable".to_owned(),
            0 => "healthy".to_owned(),
            1 => "1 trouble".to_owned(),
            troubles => format!("{troubles} troubles"),
        };
        format!(
            "cluster {name}  leader {leader}  term {}  {voters} voters{listeners}  quorum {needed}, {answering} \
             answer  {health}",
            self.term
        )
    }
}

impl QuorumView {
    /// Who votes is believed of the node that knows the latest term.
    fn of(told: &[&wire::StatusResponse]) -> Self {
        let Some(status) = told.iter().max_by_key(|status| (status.term, status.committed_index)) else {
            return Self::default();
        };
        let voters: Vec<u64> =
            status.members.iter().filter(|member| member.voter).map(|member| member.node_id).collect();
        let answers = |node: &&u64| told.iter().any(|status| status.node_id == **node);
        Self {
            voters: voters.len(),
            learners: status.members.len() - voters.len(),
            needed: voters.len() / 2 + 1,
            answering: voters.iter().filter(answers).count(),
        }
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
