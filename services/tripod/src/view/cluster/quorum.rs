//! Whether enough voters are there.

use serde::Serialize;
use tripod_client::wire;

/// As far as it can be seen from here. A contract: fields may be added, never renamed.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct QuorumView {
    /// 0: nobody who answers knows any yet.
    pub(super) voters: usize,
    pub(super) learners: usize,
    /// Voters that must be up, the leader among them.
    pub(super) needed: usize,
    /// Voters that answered this command.
    pub(super) answering: usize,
}

impl QuorumView {
    /// Who votes is believed of the node that knows the latest term.
    pub(super) fn of(told: &[&wire::StatusResponse]) -> Self {
        let Some(status) = told.iter().max_by_key(|status| (status.term, status.committed_index)) else {
            return Self::default();
        };
        let voters: Vec<u64> =
            status.members.iter().filter(|member| member.voter).map(|member| member.node_id).collect();
        let answers = |node: &&u64| told.iter().any(|status| status.node_id == **node);
        Self {
            voters: voters.len(),
            learners: status.members.len() - voters.len(),
            needed: if voters.is_empty() { 0 } else { voters.len() / 2 + 1 },
            answering: voters.iter().filter(answers).count(),
        }
    }

    /// Fewer voters answer than must: without more of them nothing can be changed, members included.
    pub(super) fn is_lost(&self) -> bool {
        self.answering < self.needed
    }
}
