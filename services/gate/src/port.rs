//! Where a service is served.

use crate::rpc::Rpc;

/// The ports that speak gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    /// Of a node, for its peers.
    Peer,
    /// Of a node, for clients: the client port and the ports of jobs.
    Client,
    /// Of an object store.
    Store,
    /// Of a worker.
    Worker,
}

impl Port {
    /// In the order of the table.
    pub const ALL: [Self; 4] = [Self::Peer, Self::Client, Self::Store, Self::Worker];

    /// What it is called in texts and labels.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::Client => "client",
            Self::Store => "store",
            Self::Worker => "worker",
        }
    }

    /// Whether the RPC is served there.
    #[must_use]
    pub const fn serves(self, rpc: Rpc) -> bool {
        match rpc {
            Rpc::PeerRaft(_) | Rpc::PeerLeader(_) => matches!(self, Self::Peer),
            Rpc::Agents(_)
            | Rpc::AggregatedDiscovery(_)
            | Rpc::Calls(_)
            | Rpc::Cluster(_)
            | Rpc::Health(_)
            | Rpc::Jobs(_)
            | Rpc::Kv(_)
            | Rpc::Levels(_)
            | Rpc::MarsScheduler(_)
            | Rpc::Membership(_)
            | Rpc::Mindspore(_)
            | Rpc::Ray(_)
            | Rpc::RayLine(_)
            | Rpc::RayScheduler(_)
            | Rpc::Sessions(_)
            | Rpc::Snapshots(_)
            | Rpc::TensorflowCoordinationService(_)
            | Rpc::TensorflowEagerService(_)
            | Rpc::TensorflowWorkerService(_)
            | Rpc::Tokens(_)
            | Rpc::XlaCoordinationService(_)
            | Rpc::XlaDistributedRuntimeService(_) => matches!(self, Self::Client),
            // A node has the values of failures.
            Rpc::RayObjStore(_) => matches!(self, Self::Client | Self::Store),
            Rpc::MarsWorker(_) => matches!(self, Self::Store),
            Rpc::RayWorkerService(_) => matches!(self, Self::Worker),
            Rpc::RayPeer(_) | Rpc::RayPeerLine(_) => matches!(self, Self::Store | Self::Worker),
        }
    }
}
