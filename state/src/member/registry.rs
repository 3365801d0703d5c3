//! Which ids were given, and the change under way.

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::ids::NodeId;
use crate::member::{Change, Finished, Open};
use crate::snapshot::unpresumed;

/// A node as a membership entry of the log lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub node: NodeId,
    /// `HOST:PORT` of its peer transport.
    pub peer: String,
    /// Whether its vote counts, in any of the sets that must agree.
    pub voter: bool,
}

/// A node that has an id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Node {
    /// `HOST:PORT` of its peer transport.
    pub peer: String,
    pub suffrage: Suffrage,
    pub claim: Claim,
}

/// Whether a node's vote counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Suffrage {
    /// It has an id, and is about to be added.
    Expected,
    Learner,
    Voter,
}

/// Which process may take a node's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Claim {
    /// The one that was given the id by hand. Nobody else ever gets it.
    ByHand,
    /// The first one that asks from the node's peer address.
    Reserved,
    /// The one that wrote down this token before it asked.
    Token(u64),
}

/// The ids that were given, and the change under way. Empty until the first membership entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Registry {
    /// Lower than every id that can still be given, by the log or by hand before; 0 in an empty registry.
    pub(super) given_below: NodeId,
    #[serde(deserialize_with = "unpresumed::map")]
    pub(super) nodes: OrdMap<NodeId, Node>,
    pub(super) open: Option<Open>,
    pub(super) last: Option<Finished>,
}

impl Registry {
    /// The id that the next node gets.
    #[must_use]
    pub fn next(&self) -> NodeId {
        NodeId(self.given_below.0.max(1))
    }

    /// The nodes that have an id, in ascending order.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().map(|(node, known)| (*node, known))
    }

    /// A node that has an id.
    #[must_use]
    pub fn node(&self, node: NodeId) -> Option<&Node> {
        self.nodes.get(&node)
    }

    /// The node that is reached at that peer address.
    #[must_use]
    pub fn at(&self, peer: &str) -> Option<(NodeId, &Node)> {
        self.nodes().find(|(_, known)| known.peer == peer)
    }

    /// Whether the id was given, or passed over, and nobody has it any more. It never comes back.
    #[must_use]
    pub fn is_removed(&self, node: NodeId) -> bool {
        node < self.given_below && !self.nodes.contains_key(&node)
    }

    /// The change under way.
    #[must_use]
    pub fn open(&self) -> Option<&Open> {
        self.open.as_ref()
    }

    /// Whether the change under way takes that node out for good.
    #[must_use]
    pub fn takes_out(&self, node: NodeId) -> bool {
        self.open.as_ref().is_some_and(|open| match open.change {
            Change::Remove { node: goes } | Change::Replace { old: goes, .. } => goes == node,
            Change::Add { .. } | Change::Promote { .. } | Change::Demote { .. } | Change::Move { .. } => {
                false
            }
        })
    }

    /// The change that ended last.
    #[must_use]
    pub fn last(&self) -> Option<&Finished> {
        self.last.as_ref()
    }

    /// Takes over what a membership entry lists; tells whether anything changed.
    pub(super) fn follow(&mut self, listed: &[Listed]) -> bool {
        let before = self.clone();
        for Listed { node, peer, voter } in listed {
            let suffrage = if *voter { Suffrage::Voter } else { Suffrage::Learner };
            let claim = self.nodes.get(node).map_or(Claim::ByHand, |known| known.claim);
            self.nodes.insert(*node, Node { peer: peer.clone(), suffrage, claim });
            self.given_below = self.given_below.max(NodeId(node.0.saturating_add(1)));
        }
        let is_listed = |node: &NodeId| listed.iter().any(|one| one.node == *node);
        self.keep(|node, known| known.suffrage == Suffrage::Expected || is_listed(&node));
        *self != before
    }

    /// Takes all other nodes out. Their ids are spent.
    pub(super) fn keep(&mut self, stays: impl Fn(NodeId, &Node) -> bool) {
        let gone: Vec<NodeId> =
            self.nodes().filter(|(node, known)| !stays(*node, known)).map(|(node, _)| node).collect();
        for node in gone {
            self.nodes.remove(&node);
        }
    }

    /// Gives an id that nobody has had.
    pub(super) fn give(&mut self, peer: &str, claim: Claim) -> NodeId {
        let node = self.next();
        self.given_below = NodeId(node.0.saturating_add(1));
        let known = Node { peer: peer.to_owned(), suffrage: Suffrage::Expected, claim };
        self.nodes.insert(node, known);
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ChangeId, TimeMs};

    #[test]
    fn a_change_takes_out_whom_it_removes_or_replaces_and_nobody_else() {
        let (node, other) = (NodeId(2), NodeId(3));
        let takes_out = |change: Change, asked: NodeId| {
            let open = Open {
                id: ChangeId(7),
                change,
                node,
                by: "test".to_owned(),
                since: TimeMs(0),
                cancelled: false,
            };
            Registry { open: Some(open), ..Registry::default() }.takes_out(asked)
        };
        assert!(takes_out(Change::Remove { node }, node));
        assert!(!takes_out(Change::Remove { node }, other));
        let replace = Change::Replace { old: other, peer: "d:1".to_owned() };
        assert!(takes_out(replace.clone(), other));
        assert!(!takes_out(replace, node), "that one comes");
        assert!(!takes_out(Change::Demote { node }, node), "it stays");
        assert!(!Registry::default().takes_out(node));
    }
}
