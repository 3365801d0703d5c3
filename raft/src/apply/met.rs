//! Everybody whom the log has named, for a node that finds none of the present members: they may all be gone while
//! the cluster lives on, and then often others are where they were.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::cluster_configuration::tell_members;
use crate::base::types::{LogId, Peer};

/// So many are remembered, those that came last.
const NODES_MAX: usize = 64;

/// Nodes of the lists of members that were applied here since the start, and where each was last. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Met {
    nodes: Arc<Mutex<BTreeMap<u64, String>>>,
}

impl Met {
    /// Remembers a list of members that was applied, and writes it into the node's log.
    pub(crate) fn applied(&self, id: LogId, membership: &openraft::Membership<u64, Peer>) {
        tell_members(id, membership);
        self.note(membership);
    }

    /// Remembers a list of members.
    pub(crate) fn note(&self, membership: &openraft::Membership<u64, Peer>) {
        let mut known = self.nodes.lock();
        known.extend(membership.nodes().map(|(node, peer)| (*node, peer.address.clone())));
        // Ids rise.
        while known.len() > NODES_MAX {
            known.pop_first();
        }
    }

    /// The addresses where somebody was, each with one who was there.
    pub(crate) fn addresses(&self) -> BTreeMap<String, u64> {
        let known = self.nodes.lock();
        known.iter().map(|(node, address)| (address.clone(), *node)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn those_who_left_are_remembered_and_the_first_of_many_forgotten() {
        let met = Met::default();
        for node in 1..=100_u64 {
            let peer = Peer { address: format!("host-{}:1", node % 10) };
            let nodes = BTreeMap::from([(node, peer)]);
            met.note(&openraft::Membership::new(vec![BTreeSet::from([node])], nodes).unwrap());
        }
        let addresses = met.addresses();
        assert_eq!(addresses.len(), 10);
        assert_eq!(addresses["host-7:1"], 97, "who was there last");
        assert_eq!(met.nodes.lock().len(), NODES_MAX);
    }
}
