//! What a node tells about its job ports. Whoever opens them writes it; `Cluster.Status` passes it on.

use std::collections::{BTreeMap, BTreeSet};

use tripod_state::ids::JobId;

/// The job ports of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobPorts {
    /// Jobs whose port is open.
    pub open: BTreeSet<JobId>,
    /// Jobs whose port cannot be opened at the moment.
    pub closed: BTreeMap<JobId, ClosedPort>,
}

/// A port that cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedPort {
    /// `HOST:PORT`; empty when the node has no port for the job.
    pub address: String,
    /// Why not, for people.
    pub reason: String,
}
