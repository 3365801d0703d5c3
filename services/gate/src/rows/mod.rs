//! The table: one exhaustive match. Each service's methods are matched beside those of its protocol, and nowhere stands a `_`.

mod coordination;
mod mars;
mod native;
mod peer;
mod scheduler;

use crate::row::Row;
use crate::rpc::Rpc;

/// What each role may do with an RPC.
#[must_use]
pub const fn row(rpc: Rpc) -> Row {
    match rpc {
        Rpc::Agents(method) => native::agents(method),
        Rpc::AggregatedDiscovery(method) => native::discovery(method),
        Rpc::Calls(method) => native::calls(method),
        Rpc::Cluster(method) => native::cluster(method),
        Rpc::Health(method) => native::health(method),
        Rpc::Jobs(method) => native::jobs(method),
        Rpc::Kv(method) => native::kv(method),
        Rpc::Levels(method) => native::levels(method),
        Rpc::MarsScheduler(method) => mars::scheduler(method),
        Rpc::MarsWorker(method) => mars::worker(method),
        Rpc::Membership(method) => scheduler::membership(method),
        Rpc::Mindspore(method) => native::mindspore(method),
        Rpc::PeerLeader(method) => peer::leader(method),
        Rpc::PeerRaft(method) => peer::raft(method),
        Rpc::Ray(method) => scheduler::ray(method),
        Rpc::RayLine(method) => scheduler::line(method),
        Rpc::RayObjStore(method) => scheduler::store(method),
        Rpc::RayPeer(method) => scheduler::peer(method),
        Rpc::RayPeerLine(method) => scheduler::peer_line(method),
        Rpc::RayScheduler(method) => scheduler::scheduler(method),
        Rpc::RayWorkerService(method) => scheduler::worker(method),
        Rpc::Sessions(method) => native::sessions(method),
        Rpc::Snapshots(method) => native::snapshots(method),
        Rpc::TensorflowCoordinationService(method) => coordination::tensorflow(method),
        Rpc::TensorflowEagerService(method) => coordination::eager(method),
        Rpc::TensorflowWorkerService(method) => coordination::worker(method),
        Rpc::Tokens(method) => native::tokens(method),
        Rpc::XlaCoordinationService(method) => coordination::xla(method),
        Rpc::XlaDistributedRuntimeService(method) => coordination::runtime(method),
    }
}

/// Every row is written rightly, or this does not compile.
const _: () = {
    let mut place = 0;
    while place < Rpc::ALL.len() {
        let _ = row(Rpc::ALL[place]);
        place += 1;
    }
};
