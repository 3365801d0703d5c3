//! What surrounds one that looks after a node in a test without a node: an engine that does nothing, a state, and peers of
//! which there is only a port.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use parking_lot::Mutex;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};
use tripod_proto::tripod::peer::v1::raft_server::{Raft as RaftApi, RaftServer};
use tripod_proto::tripod::peer::v1::{
    AcknowledgedRequest, AcknowledgedResponse, Blob, LevelAnswer, LevelQuestion, SnapshotChunk, SnapshotHeld,
    SnapshotOffer, SuspectRequest, SuspectResponse,
};
use tripod_state::level;

use crate::apply::engine::Engine;
use crate::apply::state_machine::StateMachine;
use crate::base::failure::Failure;
use crate::base::local_identity::LocalIdentity;
use crate::base::types::Vote;
use crate::care::rejoin::{PeerState, Question};
use crate::disk::Work;
use crate::disk::journal::SimulatedDisk;
use crate::peers::auth::{self, Guard};
use crate::peers::calls::PeerCalls;
use crate::peers::channels::Channels;
use crate::peers::wiring::{Wires, incoming};
use crate::peers::{blob, unblob};
use crate::snapshot::SnapshotStore;
use crate::test_cluster::network::Exchange;
use crate::test_support::quiet_hooks;

const CLUSTER: &str = "test-cluster";

/// An engine that has no log, and notes what it is told. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct IdleEngine {
    stood: Arc<Mutex<Vec<bool>>>,
}

impl IdleEngine {
    /// Whether it was to stand for election, each time that it was told.
    pub(crate) fn stood(&self) -> Vec<bool> {
        self.stood.lock().clone()
    }
}

impl Engine for IdleEngine {
    fn addresses(&self) -> BTreeMap<u64, String> {
        BTreeMap::new()
    }

    fn stand_for_election(&self, stands: bool) {
        self.stood.lock().push(stands);
    }

    async fn hold_vote(&self, _: Vote) -> Result<(), String> {
        Ok(())
    }
}

/// The state machine of a node that has applied nothing.
pub(crate) fn machine() -> StateMachine {
    let disk = SimulatedDisk::new(1);
    let snapshots = SnapshotStore::open(disk.snapshots(), Work::Inline(disk)).unwrap();
    StateMachine::new(snapshots, CLUSTER.to_owned(), quiet_hooks(), Failure::new())
}

/// How a node calls the others.
pub(crate) fn calls_of(node: u64, exchange: &Exchange) -> PeerCalls {
    let wires = Wires::Brought(exchange.at(&exchange.new_address()));
    PeerCalls::new(identity(node), Channels::new(wires, Duration::from_millis(300), node, level::NEWEST))
}

/// Opens the port of a node that says so of itself, and to the nodes in `removed` that they were removed; gives its
/// address.
pub(crate) async fn serve_peer(
    exchange: &Exchange,
    node: u64,
    says: PeerState,
    removed: &'static [u64],
) -> String {
    let address = exchange.new_address();
    let door = exchange.at(&address).listen(&address).await.unwrap();
    let why_end = |caller, _| removed.contains(&caller).then(|| auth::removed(CLUSTER, caller));
    let guard = Guard::new(identity(node), Arc::new(why_end));
    let service = InterceptedService::new(RaftServer::new(PeerPort { says }), guard);
    tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming(door)));
    address
}

fn identity(node: u64) -> LocalIdentity {
    LocalIdentity { node, cluster_id: CLUSTER.to_owned() }
}

/// Says where its node stands, and nothing else.
struct PeerPort {
    says: PeerState,
}

fn nothing_else<T>() -> Result<Response<T>, Status> {
    Err(Status::internal("this node only says where it stands"))
}

#[tonic::async_trait]
impl RaftApi for PeerPort {
    async fn standing(&self, request: Request<Blob>) -> Result<Response<Blob>, Status> {
        let _: Question = unblob(request.get_ref())?;
        Ok(Response::new(blob(&self.says)))
    }

    async fn append(&self, _: Request<Blob>) -> Result<Response<Blob>, Status> {
        nothing_else()
    }

    type StreamAppendStream = Pin<Box<dyn Stream<Item = Result<Blob, Status>> + Send>>;

    async fn stream_append(
        &self,
        _: Request<Streaming<Blob>>,
    ) -> Result<Response<Self::StreamAppendStream>, Status> {
        nothing_else()
    }

    async fn vote(&self, _: Request<Blob>) -> Result<Response<Blob>, Status> {
        nothing_else()
    }

    async fn pre_vote(&self, _: Request<Blob>) -> Result<Response<Blob>, Status> {
        nothing_else()
    }

    async fn held_vote(&self, _: Request<Blob>) -> Result<Response<Blob>, Status> {
        nothing_else()
    }

    async fn transfer_leader(&self, _: Request<Blob>) -> Result<Response<Blob>, Status> {
        nothing_else()
    }

    async fn install_snapshot(&self, _: Request<Streaming<SnapshotChunk>>) -> Result<Response<Blob>, Status> {
        nothing_else()
    }

    async fn held_snapshot(&self, _: Request<SnapshotOffer>) -> Result<Response<SnapshotHeld>, Status> {
        nothing_else()
    }

    async fn acknowledged(
        &self,
        _: Request<AcknowledgedRequest>,
    ) -> Result<Response<AcknowledgedResponse>, Status> {
        nothing_else()
    }

    async fn suspect(&self, _: Request<SuspectRequest>) -> Result<Response<SuspectResponse>, Status> {
        nothing_else()
    }

    async fn ask_node(&self, _: Request<Blob>) -> Result<Response<Blob>, Status> {
        nothing_else()
    }

    async fn level(&self, _: Request<LevelQuestion>) -> Result<Response<LevelAnswer>, Status> {
        nothing_else()
    }
}
