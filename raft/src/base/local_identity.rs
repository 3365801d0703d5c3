//! Which node this is.

use crate::base::options::Options;

/// A node and its cluster: calls to other nodes name them, and calls of others are compared with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalIdentity {
    pub(crate) node: u64,
    pub(crate) cluster_id: String,
}

impl LocalIdentity {
    pub(crate) fn of(options: &Options) -> Self {
        Self { node: options.node.0, cluster_id: options.cluster_id.clone() }
    }
}
