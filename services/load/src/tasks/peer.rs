//! What the scheduler calls at workers and at the store: tasks are passed on, and objects are only ids.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures::Stream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use tripod_dial::Incoming;
use tripod_proto::ray::obj_store_server::{ObjStore, ObjStoreServer};
use tripod_proto::ray::worker_service_server::{WorkerService, WorkerServiceServer};
use tripod_proto::ray::{
    AckReply, DeallocateObjectRequest, DieReply, DieRequest, ExecuteTaskReply, ExecuteTaskRequest,
    ImportFunctionReply, ImportFunctionRequest, ImportReusableVariableRequest, NotifyAliasRequest, ObjChunk,
    ObjStoreInfoReply, ObjStoreInfoRequest, StartDeliveryRequest, StreamObjToRequest,
};
use tripod_proto::tripod::v1::ray_order::Order;
use tripod_proto::tripod::v1::ray_peer_server::{RayPeer, RayPeerServer};
use tripod_proto::tripod::v1::{RayTellRequest, RayTellResponse, RayTold};

/// The objects that the store is supposed to hold.
#[derive(Debug, Default)]
pub(super) struct StoreObjects(Mutex<BTreeSet<u64>>);

impl StoreObjects {
    pub(super) fn add(&self, object: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(object);
    }

    fn free(&self, object: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&object);
    }

    fn all(&self) -> Vec<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

#[derive(Clone)]
struct Store {
    id: u64,
    held: Arc<StoreObjects>,
}

#[derive(Clone)]
struct Worker {
    tasks: mpsc::UnboundedSender<ExecuteTaskRequest>,
}

/// Answers for the store until the run is over.
pub(super) fn serve_store(incoming: Incoming, id: u64, held: Arc<StoreObjects>, parts: &mut JoinSet<()>) {
    let store = Store { id, held };
    let router = Server::builder()
        .add_service(ObjStoreServer::new(store.clone()))
        .add_service(RayPeerServer::new(store));
    parts.spawn(async move {
        if let Err(error) = router.serve_with_incoming(incoming).await {
            eprintln!("error: the store's port failed: {error}");
        }
    });
}

/// Passes a worker's tasks on until the run is over.
pub(super) fn serve_worker(
    incoming: Incoming,
    tasks: mpsc::UnboundedSender<ExecuteTaskRequest>,
    parts: &mut JoinSet<()>,
) {
    let worker = Worker { tasks };
    let router = Server::builder()
        .add_service(WorkerServiceServer::new(worker.clone()))
        .add_service(RayPeerServer::new(worker));
    parts.spawn(async move {
        if let Err(error) = router.serve_with_incoming(incoming).await {
            eprintln!("error: a worker's port failed: {error}");
        }
    });
}

#[tonic::async_trait]
impl RayPeer for Store {
    async fn tell(&self, request: Request<RayTellRequest>) -> Result<Response<RayTellResponse>, Status> {
        let orders = request.into_inner().orders;
        let told = vec![RayTold::default(); orders.len()];
        for order in orders {
            if let Some(Order::Deallocate(order)) = order.order {
                self.held.free(order.canonical_objectid);
            }
        }
        Ok(Response::new(RayTellResponse { orders: told }))
    }
}

#[tonic::async_trait]
impl ObjStore for Store {
    async fn start_delivery(&self, _: Request<StartDeliveryRequest>) -> Result<Response<AckReply>, Status> {
        Err(Status::failed_precondition("this store holds only ids"))
    }

    type StreamObjToStream = Pin<Box<dyn Stream<Item = Result<ObjChunk, Status>> + Send>>;

    async fn stream_obj_to(
        &self,
        _: Request<StreamObjToRequest>,
    ) -> Result<Response<Self::StreamObjToStream>, Status> {
        Err(Status::not_found("this store holds only ids"))
    }

    async fn notify_alias(&self, _: Request<NotifyAliasRequest>) -> Result<Response<AckReply>, Status> {
        Ok(Response::new(AckReply {}))
    }

    async fn deallocate_object(
        &self,
        request: Request<DeallocateObjectRequest>,
    ) -> Result<Response<AckReply>, Status> {
        self.held.free(request.into_inner().canonical_objectid);
        Ok(Response::new(AckReply {}))
    }

    async fn obj_store_info(
        &self,
        _: Request<ObjStoreInfoRequest>,
    ) -> Result<Response<ObjStoreInfoReply>, Status> {
        let (objectid, objstoreid) = (self.held.all(), Some(self.id));
        Ok(Response::new(ObjStoreInfoReply { objectid, objstoreid, ..ObjStoreInfoReply::default() }))
    }
}

impl Worker {
    fn take(&self, task: ExecuteTaskRequest) {
        // At the end of the run nobody takes them.
        drop(self.tasks.send(task));
    }
}

#[tonic::async_trait]
impl RayPeer for Worker {
    async fn tell(&self, request: Request<RayTellRequest>) -> Result<Response<RayTellResponse>, Status> {
        let orders = request.into_inner().orders;
        let told = vec![RayTold::default(); orders.len()];
        for order in orders {
            if let Some(Order::Execute(task)) = order.order {
                self.take(task);
            }
        }
        Ok(Response::new(RayTellResponse { orders: told }))
    }
}

#[tonic::async_trait]
impl WorkerService for Worker {
    async fn execute_task(
        &self,
        request: Request<ExecuteTaskRequest>,
    ) -> Result<Response<ExecuteTaskReply>, Status> {
        self.take(request.into_inner());
        Ok(Response::new(ExecuteTaskReply {}))
    }

    async fn import_function(
        &self,
        _: Request<ImportFunctionRequest>,
    ) -> Result<Response<ImportFunctionReply>, Status> {
        Ok(Response::new(ImportFunctionReply {}))
    }

    async fn import_reusable_variable(
        &self,
        _: Request<ImportReusableVariableRequest>,
    ) -> Result<Response<AckReply>, Status> {
        Ok(Response::new(AckReply {}))
    }

    async fn die(&self, _: Request<DieRequest>) -> Result<Response<DieReply>, Status> {
        Ok(Response::new(DieReply {}))
    }
}
