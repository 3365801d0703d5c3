//! A scheduler that notes what it is told and answers as the test says.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::transport::Server;
use tonic::transport::server::Router;
use tonic::{Request, Response, Status};
use tripod_objstore::StoreId;
use tripod_proto::metadata::{RAY_ACKED, RAY_EXTENDED, RAY_REASON, RAY_SEQ, RAY_SESSION};
use tripod_proto::ray::scheduler_server::{Scheduler, SchedulerServer};
use tripod_proto::ray::{
    AckReply, AddContainedObjectIDsRequest, AliasObjectIDsRequest, ChangeCountRequest,
    DecrementRefCountRequest, ExportFunctionReply, ExportFunctionRequest, ExportReusableVariableRequest,
    IncrementRefCountRequest, KillWorkersReply, KillWorkersRequest, ObjReadyRequest, PutObjReply,
    PutObjRequest, ReadyForNewTaskRequest, RegisterFunctionRequest, RegisterObjStoreReply,
    RegisterObjStoreRequest, RegisterWorkerReply, RegisterWorkerRequest, RequestObjRequest,
    SchedulerInfoReply, SchedulerInfoRequest, SubmitTaskReply, SubmitTaskRequest, TaskInfoReply,
    TaskInfoRequest,
};
use tripod_proto::tripod::v1::heartbeat_response::Order;
use tripod_proto::tripod::v1::membership_server::{Membership, MembershipServer};
use tripod_proto::tripod::v1::ray_call::Call;
use tripod_proto::tripod::v1::ray_server::{Ray, RayServer};
use tripod_proto::tripod::v1::{
    HeartbeatRequest, HeartbeatResponse, RayBatchRequest, RayBatchResponse, RayFetchFailedRequest, RayResult,
    RayStatusRequest, RayStatusResponse, RayStore, RayTasksRequest, RayTasksResponse, RayWaitRequest,
    RayWaitResponse,
};

/// The session, place and acknowledged place of a call.
pub(crate) type Stamp = (String, u64, u64);

/// An object that was told ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadyReport {
    pub(crate) store: u64,
    pub(crate) object: u64,
    pub(crate) run: Option<(u64, u32)>,
    pub(crate) stamp: Stamp,
}

/// What a scheduler does with the next calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Executes,
    /// Does nothing and says that another node should be asked.
    Unavailable,
    /// Executes, and the answer is lost.
    LosesAnswer,
    /// The store was given up.
    Expired,
    /// It does not know the session any more.
    SessionExpired,
    /// It does not want the object.
    Refuses,
}

/// What several nodes of one cluster share.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) registered: Vec<(String, Stamp, bool)>,
    pub(crate) ready: Vec<ReadyReport>,
    /// Objects that were told not to come.
    pub(crate) failed: Vec<RayFetchFailedRequest>,
    pub(crate) calls: Vec<Stamp>,
    pub(crate) beats: Vec<HeartbeatRequest>,
    /// What becomes of the next reports; then they are executed.
    pub(crate) moods: VecDeque<Mood>,
    pub(crate) order: Option<Order>,
    /// Where other stores of the cluster are.
    pub(crate) stores: Vec<String>,
    /// Answers to registrations wait for it.
    pub(crate) gate: Option<Arc<Semaphore>>,
    executed: Vec<Stamp>,
}

/// One node of the scheduler.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    pub(crate) facts: Arc<Mutex<Facts>>,
}

/// A node that listens, until this is dropped.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A node that listens in a runtime of its own, until this is dropped: then its connections end, too, as those of a process
/// that is killed.
#[derive(Debug)]
pub(crate) struct Apart {
    pub(crate) address: SocketAddr,
    process: Option<Runtime>,
}

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.shutdown_background();
        }
    }
}

impl Node {
    pub(crate) async fn listen(&self) -> Listening {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let serving = self.routes().serve_with_incoming(TcpListenerStream::new(listener));
        let task = tokio::spawn(async move { serving.await.expect("served") });
        Listening { address, task }
    }

    pub(crate) fn listen_apart(&self) -> Apart {
        let process = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("set");
        let address = listener.local_addr().expect("bound");
        let routes = self.routes();
        process.spawn(async move {
            let listener = TcpListener::from_std(listener).expect("a socket");
            routes.serve_with_incoming(TcpListenerStream::new(listener)).await.expect("served");
        });
        Apart { address, process: Some(process) }
    }

    fn routes(&self) -> Router {
        Server::builder()
            .add_service(SchedulerServer::new(self.clone()))
            .add_service(RayServer::new(self.clone()))
            .add_service(MembershipServer::new(self.clone()))
    }

    /// Waits until the facts are as wanted.
    pub(crate) async fn until<T>(&self, what: &str, wanted: impl Fn(&Facts) -> Option<T>) -> T {
        crate::support::until(what, || wanted(&self.facts.lock().expect("not poisoned"))).await
    }

    /// The objects that were told ready, in order.
    pub(crate) fn ready(&self) -> Vec<u64> {
        self.facts.lock().expect("not poisoned").ready.iter().map(|told| told.object).collect()
    }

    /// Waits until that was told of an object, once.
    pub(crate) async fn until_failed(&self, store: StoreId, object: u64, absent_at: &str, told: bool) {
        let absent_at = absent_at.to_owned();
        let wanted = RayFetchFailedRequest { objstoreid: store.0, objectid: object, absent_at, told };
        let told = |facts: &Facts| facts.failed.contains(&wanted).then_some(());
        self.until(&format!("that object {object} does not come to {store}"), told).await;
    }

    pub(crate) async fn until_ready(&self, store: StoreId, object: u64) {
        let wanted = |told: &ReadyReport| (told.store, told.object) == (store.0, object);
        self.until(&format!("object {object} is ready in {store}"), |facts| {
            facts.ready.iter().any(wanted).then_some(())
        })
        .await;
    }

    pub(crate) fn will(&self, moods: &[Mood]) {
        self.facts.lock().expect("not poisoned").moods.extend(moods);
    }

    /// Takes one call with reports.
    fn reported(
        &self,
        metadata: &MetadataMap,
        reports: Vec<(ObjReadyRequest, Option<(u64, u32)>)>,
        failed: Vec<RayFetchFailedRequest>,
    ) -> Result<bool, Status> {
        let stamp = stamp(metadata);
        let mut facts = self.facts.lock().expect("not poisoned");
        facts.calls.push(stamp.clone());
        let mood = facts.moods.pop_front().unwrap_or(Mood::Executes);
        match mood {
            Mood::Unavailable => return Err(Status::unavailable("no leader")),
            Mood::Expired => return Err(reason("the store was given up", "expired")),
            Mood::SessionExpired => return Err(reason("session expired", "session")),
            Mood::Refuses => return Err(reason("nothing refers to the object", "deallocated")),
            Mood::Executes | Mood::LosesAnswer => {}
        }
        let replayed = facts.executed.iter().any(|done| done.0 == stamp.0 && done.1 == stamp.1);
        if !replayed {
            facts.executed.push(stamp.clone());
            facts.failed.extend(failed);
            for (report, run) in reports {
                let stamp = stamp.clone();
                facts.ready.push(ReadyReport {
                    store: report.objstoreid,
                    object: report.objectid,
                    run,
                    stamp,
                });
            }
        }
        if mood == Mood::LosesAnswer { Err(Status::unknown("the answer was lost")) } else { Ok(replayed) }
    }
}

fn reason(text: &str, word: &'static str) -> Status {
    let mut status = Status::failed_precondition(text);
    status.metadata_mut().insert(RAY_REASON, MetadataValue::from_static(word));
    status
}

fn header(metadata: &MetadataMap, key: &str) -> String {
    metadata.get(key).map(|value| value.to_str().expect("text").to_owned()).unwrap_or_default()
}

fn stamp(metadata: &MetadataMap) -> Stamp {
    let number = |key| header(metadata, key).parse().expect("a number");
    (header(metadata, RAY_SESSION), number(RAY_SEQ), number(RAY_ACKED))
}

#[tonic::async_trait]
impl Scheduler for Node {
    async fn register_obj_store(
        &self,
        request: Request<RegisterObjStoreRequest>,
    ) -> Result<Response<RegisterObjStoreReply>, Status> {
        let stamp = stamp(request.metadata());
        let extended = header(request.metadata(), RAY_EXTENDED) == "1";
        let (objstoreid, gate) = {
            let mut facts = self.facts.lock().expect("not poisoned");
            facts.registered.push((request.into_inner().objstore_address, stamp, extended));
            (facts.registered.len() as u64 - 1, facts.gate.clone())
        };
        if let Some(gate) = gate {
            drop(gate.acquire().await.expect("open"));
        }
        Ok(Response::new(RegisterObjStoreReply { objstoreid }))
    }

    async fn obj_ready(&self, request: Request<ObjReadyRequest>) -> Result<Response<AckReply>, Status> {
        let run = match header(request.metadata(), tripod_proto::metadata::RAY_OP).parse() {
            Ok(operation) => {
                let attempt = header(request.metadata(), tripod_proto::metadata::RAY_ATTEMPT);
                Some((operation, attempt.parse().expect("with its attempt")))
            }
            Err(_) => None,
        };
        let metadata = request.metadata().clone();
        self.reported(&metadata, vec![(request.into_inner(), run)], Vec::new())?;
        Ok(Response::new(AckReply {}))
    }

    async fn register_worker(
        &self,
        _: Request<RegisterWorkerRequest>,
    ) -> Result<Response<RegisterWorkerReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn register_function(
        &self,
        _: Request<RegisterFunctionRequest>,
    ) -> Result<Response<AckReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn submit_task(&self, _: Request<SubmitTaskRequest>) -> Result<Response<SubmitTaskReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn increment_count(&self, _: Request<ChangeCountRequest>) -> Result<Response<AckReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn decrement_count(&self, _: Request<ChangeCountRequest>) -> Result<Response<AckReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn put_obj(&self, _: Request<PutObjRequest>) -> Result<Response<PutObjReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn request_obj(&self, _: Request<RequestObjRequest>) -> Result<Response<AckReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn alias_object_i_ds(
        &self,
        _: Request<AliasObjectIDsRequest>,
    ) -> Result<Response<AckReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn increment_ref_count(
        &self,
        _: Request<IncrementRefCountRequest>,
    ) -> Result<Response<AckReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn decrement_ref_count(
        &self,
        _: Request<DecrementRefCountRequest>,
    ) -> Result<Response<AckReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn add_contained_object_i_ds(
        &self,
        _: Request<AddContainedObjectIDsRequest>,
    ) -> Result<Response<AckReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn ready_for_new_task(
        &self,
        _: Request<ReadyForNewTaskRequest>,
    ) -> Result<Response<AckReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn scheduler_info(
        &self,
        _: Request<SchedulerInfoRequest>,
    ) -> Result<Response<SchedulerInfoReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn task_info(&self, _: Request<TaskInfoRequest>) -> Result<Response<TaskInfoReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn kill_workers(
        &self,
        _: Request<KillWorkersRequest>,
    ) -> Result<Response<KillWorkersReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn export_function(
        &self,
        _: Request<ExportFunctionRequest>,
    ) -> Result<Response<ExportFunctionReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn export_reusable_variable(
        &self,
        _: Request<ExportReusableVariableRequest>,
    ) -> Result<Response<AckReply>, Status> {
        Err(Status::unimplemented(""))
    }
}

#[tonic::async_trait]
impl Ray for Node {
    async fn batch(&self, request: Request<RayBatchRequest>) -> Result<Response<RayBatchResponse>, Status> {
        let metadata = request.metadata().clone();
        let calls = request.into_inner().calls;
        let count = calls.len();
        let (mut reports, mut failed) = (Vec::new(), Vec::new());
        for call in calls {
            match call.call {
                Some(Call::Ready(ready)) => {
                    reports.push((ready, call.run.map(|run| (run.operationid, run.attempt))));
                }
                Some(Call::FetchFailed(report)) => failed.push(report),
                other => panic!("a store reports nothing else: {other:?}"),
            }
        }
        let replayed = self.reported(&metadata, reports, failed)?;
        Ok(Response::new(RayBatchResponse { results: vec![RayResult::default(); count], replayed }))
    }

    async fn wait(&self, _: Request<RayWaitRequest>) -> Result<Response<RayWaitResponse>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn status(&self, _: Request<RayStatusRequest>) -> Result<Response<RayStatusResponse>, Status> {
        let stores = self.facts.lock().expect("not poisoned").stores.clone().into_iter();
        let alive = |address| RayStore { address, state: "alive".to_owned(), ..RayStore::default() };
        Ok(Response::new(RayStatusResponse { stores: stores.map(alive).collect(), ..Default::default() }))
    }
    async fn tasks(&self, _: Request<RayTasksRequest>) -> Result<Response<RayTasksResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

#[tonic::async_trait]
impl Membership for Node {
    async fn heartbeat(
        &self,
        request: Request<HeartbeatRequest>,
    ) -> Result<Response<HeartbeatResponse>, Status> {
        let mut facts = self.facts.lock().expect("not poisoned");
        facts.beats.push(request.into_inner());
        let order = facts.order.take().unwrap_or(Order::None).into();
        let ttl_ms = Duration::from_millis(90).as_millis().try_into().expect("short");
        Ok(Response::new(HeartbeatResponse { ttl_ms, term: 1, leader_address: String::new(), order }))
    }
}
