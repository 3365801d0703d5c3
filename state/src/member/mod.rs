//! The nodes' public addresses, as they announced them.

use serde::{Deserialize, Serialize};

use crate::ids::NodeId;

/// What changes the members' addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// A node tells where it listens. Repeated at every start; the last one wins.
    Announce { node: NodeId, addresses: Addresses },
}

/// Where a node listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Addresses {
    /// `HOST:PORT` for clients.
    pub client: String,
    /// `HOST:PORT` for health and status over HTTP.
    pub http: String,
    /// The host part of job addresses.
    pub job_host: String,
    /// The first port of the node's range of job ports; slot k listens on this plus k.
    pub job_port_first: u16,
    /// How many job ports the node has.
    pub job_port_count: u16,
}
