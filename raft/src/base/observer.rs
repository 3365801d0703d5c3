//! What a simulation may see of a node's log.

use std::collections::BTreeSet;

use openraft::EntryPayload;
use tripod_state::ids::{LogIndex, NodeId, Term};
use xxhash_rust::xxh3::xxh3_64;

use crate::base::codec;
use crate::base::types::Entry;

/// One entry, as its place in the log and a number over all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogLine {
    pub index: LogIndex,
    /// The term in which it was appended first.
    pub term: Term,
    /// Who appended it first. openraft may elect a second leader in a term, if its node id is higher; the votes of a
    /// term are ordered by it, and entries of one place and term are the same only if their leader is.
    pub leader: NodeId,
    /// Over the entry as it is encoded: equal for equal entries, on every node.
    pub digest: u64,
}

impl LogLine {
    pub(crate) fn of(entry: &Entry) -> Self {
        let leader = entry.log_id.leader_id;
        Self {
            index: LogIndex(entry.log_id.index),
            term: Term(leader.term),
            leader: NodeId(leader.node_id),
            digest: xxh3_64(&codec::encode(entry)),
        }
    }
}

/// The members, as an entry of the log lists them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenMembers {
    /// The sets of voters of which each must agree: two while one takes the place of the other.
    pub sets: Vec<BTreeSet<NodeId>>,
    /// All members, learners included.
    pub nodes: BTreeSet<NodeId>,
}

/// Is told what a node does. Must not block, nor call the node.
pub trait Observer: Send + Sync + 'static {
    /// The entry is about to be applied, as the next one of this node.
    fn applied(&self, line: LogLine);

    /// The entry, of which [`Self::applied`] was told, lists the members.
    fn members(&self, line: LogLine, members: SeenMembers) {
        let _ = (line, members);
    }
}

/// Tells the observer of an entry that is about to be applied.
pub(crate) fn tell(observer: &dyn Observer, entry: &Entry) {
    let line = LogLine::of(entry);
    observer.applied(line);
    if let EntryPayload::Membership(membership) = &entry.payload {
        let ids = |set: &BTreeSet<u64>| set.iter().copied().map(NodeId).collect();
        let sets = membership.get_joint_config().iter().map(ids).collect();
        let nodes = membership.nodes().map(|(node, _)| NodeId(*node)).collect();
        observer.members(line, SeenMembers { sets, nodes });
    }
}
