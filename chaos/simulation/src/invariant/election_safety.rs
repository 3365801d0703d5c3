//! Nobody goes back to an earlier leader.
//!
//! openraft orders votes by term and then by node, so that within a term a node with a higher id may be elected
//! after one with a lower id, and takes its place: a term may see two leaders, and the one that was elected last
//! wins. What a node must never do is to follow a leader that is older than the one it followed before.

use std::collections::{BTreeMap, BTreeSet};

use tripod_state::ids::{NodeId, Term};

use crate::observation::Life;

/// A leader: of its term, and who it is.
type Vote = (Term, NodeId);

/// Whom each node followed last in its present life.
#[derive(Debug, Default)]
pub(crate) struct ElectionSafety {
    followed: BTreeMap<NodeId, (Life, Vote)>,
    leaders: BTreeSet<Vote>,
}

impl ElectionSafety {
    /// `node` holds `leader` for the leader of `term`.
    pub(crate) fn follows(
        &mut self,
        node: NodeId,
        life: Life,
        term: Term,
        leader: NodeId,
    ) -> Result<(), String> {
        let vote = (term, leader);
        self.leaders.insert(vote);
        match self.followed.insert(node, (life, vote)) {
            Some((same, before)) if same == life && vote < before => Err(format!(
                "node {node} followed node {} of term {}, and then node {leader} of term {term}",
                before.1, before.0
            )),
            _ => Ok(()),
        }
    }

    /// How many leaders there were.
    pub(crate) fn leaders(&self) -> u64 {
        self.leaders.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_back_to_an_older_leader_is_noticed() {
        let mut rule = ElectionSafety::default();
        let mut follows =
            |life, term, leader| rule.follows(NodeId(9), Life(life), Term(term), NodeId(leader));
        assert_eq!(follows(1, 1, 1), Ok(()));
        assert_eq!(follows(1, 1, 2), Ok(()), "a later leader of the same term");
        assert_eq!(follows(1, 2, 1), Ok(()));
        assert_eq!(follows(2, 1, 1), Ok(()), "what it had only heard of may be forgotten in a crash");
        assert_eq!(follows(2, 1, 2), Ok(()));
        let broken = follows(2, 1, 1).unwrap_err();
        assert_eq!(broken, "node 9 followed node 2 of term 1, and then node 1 of term 1");
        assert!(follows(2, 0, 7).is_err());
        assert_eq!(rule.leaders(), 4);
    }
}
