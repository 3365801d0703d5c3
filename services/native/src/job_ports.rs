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
    /// Ports that one protocol has for each job.
    pub own: Vec<OwnPort>,
}

/// A port of a protocol that frames its bytes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnPort {
    pub job: JobId,
    /// As its front end is named.
    pub protocol: &'static str,
    /// `HOST:PORT` as clients reach it; empty when the node has no port for the job.
    pub address: String,
    /// Why it is not open, for people; `None`: it is.
    pub reason: Option<String>,
}

/// A port that cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedPort {
    /// `HOST:PORT`; empty when the node has no port for the job.
    pub address: String,
    /// Why not, for people.
    pub reason: String,
}
