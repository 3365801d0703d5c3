//! A scripted object store: it holds what the test says that it holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use parking_lot::Mutex;
use tokio_stream::Iter;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};
use tripod_proto::metadata;
use tripod_proto::ray as pb;
use tripod_proto::ray::obj_store_server::{ObjStore, ObjStoreServer};
use tripod_proto::tripod::v1::RayTellRequest;
use tripod_proto::tripod::v1::ray_peer_line_server::{RayPeerLine, RayPeerLineServer};

use super::peer::{Calls, Port};
use super::worker::Lined;
use super::{Cluster, HOST};

/// The port of the next store.
static PORTS: AtomicU16 = AtomicU16::new(10_000);

/// What a store is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Deliver { from: String, object: u64 },
    Alias { alias: u64, canonical: u64 },
    Deallocate(u64),
}

/// A store: where it listens, what it holds, and what it was told.
pub(crate) struct Store {
    pub(crate) id: u64,
    pub(crate) address: String,
    pub(crate) calls: Calls<Call>,
    /// Workers whose orders it passes on. It does so for no other.
    pub(crate) passed: Passed,
    holds: Arc<Mutex<BTreeSet<u64>>>,
    port: Option<Port>,
}

/// By the ids of workers.
pub(crate) type Passed = Arc<Mutex<BTreeMap<u64, Lined>>>;

impl Store {
    pub(crate) async fn start(cluster: &Cluster) -> Self {
        let (calls, holds, passed) = (Calls::new(), Arc::default(), Passed::default());
        let script = Script { calls: calls.clone(), holds: Arc::clone(&holds) };
        let routes = Routes::new(ObjStoreServer::new(script));
        let routes = routes.add_service(RayPeerLineServer::new(Passing(passed.clone())));
        let address = format!("{HOST}:{}", PORTS.fetch_add(1, Ordering::Relaxed));
        let port = Port::serve(&cluster.lines, &address, routes);
        let request = pb::RegisterObjStoreRequest { objstore_address: address.clone() };
        let reply = cluster.scheduler().register_obj_store(request).await.expect("registered");
        Self { id: reply.into_inner().objstoreid, address, calls, holds, passed, port: Some(port) }
    }

    /// It has that object now.
    pub(crate) fn hold(&self, object: u64) {
        self.holds.lock().insert(object);
    }

    /// It does not have that object any more.
    pub(crate) fn lose(&self, object: u64) {
        self.holds.lock().remove(&object);
    }

    /// Its process ends.
    pub(crate) fn die(&mut self) {
        self.port = None;
    }

    /// The next object that it is to fetch, which must be the next thing that it is told.
    pub(crate) async fn fetches(&self) -> u64 {
        match self.calls.next().await {
            Call::Deliver { object, .. } => object,
            other => panic!("no delivery: {other:?}"),
        }
    }
}

struct Passing(Passed);

#[tonic::async_trait]
impl RayPeerLine for Passing {
    type OrdersStream = <Lined as RayPeerLine>::OrdersStream;

    async fn orders(
        &self,
        request: Request<Streaming<RayTellRequest>>,
    ) -> Result<Response<Self::OrdersStream>, Status> {
        let named = request.metadata().get(metadata::RAY_WORKER).expect("a worker is named");
        let worker = named.to_str().expect("text").parse().expect("a number");
        let lined = self.0.lock().get(&worker).cloned();
        lined.ok_or_else(|| Status::not_found("it takes none here"))?.orders(request).await
    }
}

struct Script {
    calls: Calls<Call>,
    holds: Arc<Mutex<BTreeSet<u64>>>,
}

type Acknowledged = Result<Response<pb::AckReply>, Status>;

#[tonic::async_trait]
impl ObjStore for Script {
    type StreamObjToStream = Iter<std::vec::IntoIter<Result<pb::ObjChunk, Status>>>;

    async fn start_delivery(&self, request: Request<pb::StartDeliveryRequest>) -> Acknowledged {
        let pb::StartDeliveryRequest { objstore_address: from, objectid: object, .. } = request.into_inner();
        self.calls.note(Call::Deliver { from, object })?;
        Ok(Response::new(pb::AckReply {}))
    }

    async fn stream_obj_to(
        &self,
        _: Request<pb::StreamObjToRequest>,
    ) -> Result<Response<Self::StreamObjToStream>, Status> {
        Err(Status::unimplemented("nothing is fetched from a scripted store"))
    }

    async fn notify_alias(&self, request: Request<pb::NotifyAliasRequest>) -> Acknowledged {
        let request = request.into_inner();
        let (alias, canonical) = (request.alias_objectid, request.canonical_objectid);
        self.calls.note(Call::Alias { alias, canonical })?;
        self.holds.lock().insert(alias);
        Ok(Response::new(pb::AckReply {}))
    }

    async fn deallocate_object(&self, request: Request<pb::DeallocateObjectRequest>) -> Acknowledged {
        let object = request.into_inner().canonical_objectid;
        self.calls.note(Call::Deallocate(object))?;
        self.holds.lock().remove(&object);
        Ok(Response::new(pb::AckReply {}))
    }

    async fn obj_store_info(
        &self,
        _: Request<pb::ObjStoreInfoRequest>,
    ) -> Result<Response<pb::ObjStoreInfoReply>, Status> {
        let objectid = self.holds.lock().iter().copied().collect();
        Ok(Response::new(pb::ObjStoreInfoReply { objectid, ..Default::default() }))
    }
}
