//! Where a call says which job it is about.

use crate::rpc::{Agents, Events, Jobs, Rpc};

/// Where an RPC says which job it is about. Metadata that name a job are believed of every call; they come before the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobPlace {
    /// The metadata say it, else the port.
    Head,
    /// The same, and where the port is nobody's own a host's first label comes before it, if there is such a job.
    HeadOrLabel,
    /// Its message says it, whatever metadata and port say.
    Message,
    /// It is about no job.
    Nowhere,
}

impl JobPlace {
    /// That of an RPC.
    #[must_use]
    pub const fn of(rpc: Rpc) -> Self {
        match rpc {
            Rpc::TensorflowCoordinationService(_)
            | Rpc::TensorflowEagerService(_)
            | Rpc::TensorflowWorkerService(_)
            | Rpc::XlaCoordinationService(_)
            | Rpc::XlaDistributedRuntimeService(_) => Self::HeadOrLabel,
            Rpc::MarsScheduler(_)
            | Rpc::MarsWorker(_)
            | Rpc::Membership(_)
            | Rpc::Ray(_)
            | Rpc::RayLine(_)
            | Rpc::RayObjStore(_)
            | Rpc::RayPeer(_)
            | Rpc::RayPeerLine(_)
            | Rpc::RayScheduler(_)
            | Rpc::RayWorkerService(_) => Self::Head,
            Rpc::Agents(Agents::Beat)
            | Rpc::AggregatedDiscovery(_)
            | Rpc::Diagnose(_)
            | Rpc::Events(Events::OfJob)
            | Rpc::Jobs(
                Jobs::Create | Jobs::Get | Jobs::Delete | Jobs::Note | Jobs::EndTask | Jobs::NoteHost,
            )
            | Rpc::Kv(_)
            | Rpc::Mindspore(_) => Self::Message,
            Rpc::Agents(Agents::WatchMembers)
            | Rpc::Calls(_)
            | Rpc::Cluster(_)
            | Rpc::Events(Events::OfCluster)
            | Rpc::Health(_)
            | Rpc::Jobs(Jobs::List)
            | Rpc::Levels(_)
            | Rpc::PeerLeader(_)
            | Rpc::PeerRaft(_)
            | Rpc::Sessions(_)
            | Rpc::Snapshots(_)
            | Rpc::Tokens(_) => Self::Nowhere,
        }
    }
}
