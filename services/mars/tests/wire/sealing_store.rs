//! A played object store that is told to seal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_stream::Iter;
use tonic::service::Routes;
use tonic::transport::{Channel, Server};
use tonic::{Code, Request, Response, Status, Streaming};
use tripod_proto::mars::v1 as pb;
use tripod_proto::mars::v1::worker_server::{Worker, WorkerServer};
use tripod_proto::ray;
use tripod_proto::ray::obj_store_server::ObjStoreServer;
use tripod_proto::ray::scheduler_client::SchedulerClient;
use tripod_wait::until;

use crate::support::{EmptyStore, Node, next_address};

/// What a played store does when it is told to seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    Make,
    /// It says that it has made them, and the scheduler does not hear of it.
    Silent,
    /// It says this of every chunk.
    Fail(Code),
    /// It does not answer until the plan is another one.
    Hold,
}

/// An object store that makes objects without making them: it says that it has, to who asks and to the scheduler.
pub(crate) struct Store {
    pub(crate) address: String,
    plan: watch::Sender<Plan>,
    played: Played,
    tasks: JoinSet<()>,
}

#[derive(Clone)]
struct Played {
    scheduler: SchedulerClient<Channel>,
    /// What the scheduler calls it.
    id: Arc<AtomicU64>,
    plan: watch::Receiver<Plan>,
    calls: Arc<Mutex<Vec<pb::SealMutableChunksRequest>>>,
    /// Calls that are not answered yet.
    held: Arc<AtomicUsize>,
}

/// Counts a call until it is answered or given up.
struct Held(Arc<AtomicUsize>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Store {
    pub(crate) async fn start(node: &Node, plan: Plan) -> Self {
        let (plan, told) = watch::channel(plan);
        let played = Played {
            scheduler: node.ray(),
            id: Arc::default(),
            plan: told,
            calls: Arc::default(),
            held: Arc::default(),
        };
        let mut store = Self { address: next_address(), plan, played, tasks: JoinSet::new() };
        store.listen(node);
        let request = ray::RegisterObjStoreRequest { objstore_address: store.address.clone() };
        let registered = node.ray().register_obj_store(request).await.expect("registered").into_inner();
        store.played.id.store(registered.objstoreid, Ordering::SeqCst);
        store
    }

    pub(crate) fn listen(&mut self, node: &Node) {
        let incoming = node.lines.listen(&self.address);
        let played = self.played.clone();
        self.tasks.spawn(async move {
            let routes = Routes::new(ObjStoreServer::new(EmptyStore)).add_service(WorkerServer::new(played));
            // It ends when its place is closed.
            _ = Server::builder().add_routes(routes).serve_with_incoming(incoming).await;
        });
    }

    pub(crate) fn plan(&self, plan: Plan) {
        self.plan.send_replace(plan);
    }

    pub(crate) fn calls(&self) -> Vec<pb::SealMutableChunksRequest> {
        self.played.calls.lock().clone()
    }

    pub(crate) fn held(&self) -> usize {
        self.played.held.load(Ordering::SeqCst)
    }

    /// Waits until it is told to seal, and does not answer.
    pub(crate) async fn holds(&self) {
        until("the store is told to seal", || (self.held() == 1).then_some(())).await;
    }
}

type Nothing<T> = Iter<std::vec::IntoIter<Result<T, Status>>>;

fn not_played<T>() -> Result<T, Status> {
    Err(Status::unimplemented("a played store seals, and nothing else"))
}

#[tonic::async_trait]
impl Worker for Played {
    type GetChunksDataStream = Nothing<pb::ChunkData>;
    type GetMutableChunksDataStream = Nothing<pb::ChunkData>;

    async fn seal_mutable_chunks(
        &self,
        request: Request<pb::SealMutableChunksRequest>,
    ) -> Result<Response<pb::SealMutableChunksResponse>, Status> {
        let message = request.into_inner();
        self.held.fetch_add(1, Ordering::SeqCst);
        let _held = Held(Arc::clone(&self.held));
        self.calls.lock().push(message.clone());
        let mut told = self.plan.clone();
        let plan = *told.wait_for(|plan| *plan != Plan::Hold).await.expect("the test goes on");
        let error = match plan {
            Plan::Fail(code) => {
                let code = u32::try_from(i32::from(code)).expect("codes are few");
                Some(pb::ChunkError { code, message: "as planned".to_owned() })
            }
            Plan::Make | Plan::Silent | Plan::Hold => None,
        };
        if plan == Plan::Make {
            for chunk in &message.chunks {
                let objstoreid = self.id.load(Ordering::SeqCst);
                let ready = ray::ObjReadyRequest { objectid: chunk.object_id, objstoreid };
                self.scheduler.clone().obj_ready(ready).await.expect("the scheduler hears of it");
            }
        }
        let chunks = message.chunks.into_iter();
        let chunks = chunks.map(|chunk| pb::SealedChunk { key: chunk.key, error: error.clone() });
        Ok(Response::new(pb::SealMutableChunksResponse { chunks: chunks.collect() }))
    }

    async fn get_chunks_data(
        &self,
        _: Request<pb::GetChunksDataRequest>,
    ) -> Result<Response<Self::GetChunksDataStream>, Status> {
        not_played()
    }

    async fn get_mutable_chunks_data(
        &self,
        _: Request<pb::GetMutableChunksDataRequest>,
    ) -> Result<Response<Self::GetMutableChunksDataStream>, Status> {
        not_played()
    }

    async fn put_mutable_chunks_data(
        &self,
        _: Request<Streaming<pb::MutableBatch>>,
    ) -> Result<Response<pb::PutMutableChunksDataResponse>, Status> {
        not_played()
    }

    async fn put_chunks_data(
        &self,
        _: Request<Streaming<pb::ChunkData>>,
    ) -> Result<Response<pb::PutChunksDataResponse>, Status> {
        not_played()
    }

    async fn drop_chunks(
        &self,
        _: Request<pb::DropChunksRequest>,
    ) -> Result<Response<pb::DropChunksResponse>, Status> {
        not_played()
    }

    async fn get_worker_status(
        &self,
        _: Request<pb::GetWorkerStatusRequest>,
    ) -> Result<Response<pb::GetWorkerStatusResponse>, Status> {
        not_played()
    }
}
