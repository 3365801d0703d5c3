//! Whom a node waits for that cannot form its cluster yet, for whoever asks the node how it is.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// Clones are the same. At most as many nodes as there are voters at the first start.
#[derive(Debug, Clone, Default)]
pub(crate) struct Forming {
    waits_for: Arc<Mutex<Option<BTreeSet<u64>>>>,
}

impl Forming {
    /// The cluster is not formed, and these nodes have not answered.
    pub(crate) fn waits_for(&self, nodes: BTreeSet<u64>) {
        *self.waits_for.lock() = Some(nodes);
    }

    /// This node waits no more.
    pub(crate) fn done(&self) {
        *self.waits_for.lock() = None;
    }

    /// `None`: this node does not wait for others to form a cluster.
    pub(crate) fn get(&self) -> Option<BTreeSet<u64>> {
        self.waits_for.lock().clone()
    }
}
