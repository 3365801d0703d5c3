//! A node over a state in memory, and scripted workers and stores.
//!
//! All of them are reached by lines and not by sockets, so that the clock of a test can stand still.

mod begin;
pub(crate) mod peer;
mod process;
pub(crate) mod store;
pub(crate) mod worker;

use std::sync::Arc;

use tonic::transport::Channel;
use tonic::{Request, Status};
use tripod_gateway::{Gateway, MemoryBackend, Options};
use tripod_lines::Lines;
use tripod_proto::ray as pb;
use tripod_proto::ray::scheduler_client::SchedulerClient;
use tripod_proto::tripod::v1::membership_client::MembershipClient;
use tripod_proto::tripod::v1::ray_call::Call;
use tripod_proto::tripod::v1::ray_client::RayClient;
use tripod_proto::tripod::v1::ray_line_client::RayLineClient;
use tripod_proto::tripod::v1::{RayBatchRequest, RayCall, RayFetchFailedRequest, RayResult};
use tripod_ray::{MESSAGE_BYTES_MAX, Patience};
use tripod_state::ids::JobId;
use tripod_state::ray::ids::ObjectId;
use tripod_state::ray::view::{Availability, Totals};
use tripod_state::ray::{self, Decision, Peer, Ray};
use tripod_state::{Command, Scope, State};

use self::begin::{create_job, raise_level};
use self::process::Process;
use self::store::Store;
use self::worker::Worker;

/// The machine that everything runs on.
pub(crate) const HOST: &str = "10.0.0.1";

/// One node that leads, with its port and its engine.
pub(crate) struct Cluster {
    pub(crate) gateway: Gateway,
    pub(crate) backend: Arc<MemoryBackend>,
    pub(crate) job: JobId,
    /// Where the node listens.
    pub(crate) address: String,
    pub(crate) lines: Lines,
    channel: Channel,
    /// Another leader begins after every call.
    fails_over: bool,
    patience: Patience,
    process: Option<Process>,
    kills: u64,
}

/// What a cluster of a test is like.
#[derive(Default)]
pub(crate) struct Kind {
    pub(crate) patience: Patience,
    pub(crate) fails_over: bool,
    /// Nothing happens that no call asks for.
    pub(crate) without_engine: bool,
    /// What there is at the beginning, with a job `default`.
    pub(crate) prepared: Option<State>,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        Self::of(Kind::default()).await
    }

    /// One in which nothing happens that no call asks for.
    pub(crate) async fn at_rest() -> Self {
        Self::of(Kind { without_engine: true, ..Kind::default() }).await
    }

    pub(crate) async fn of(kind: Kind) -> Self {
        let Kind { patience, fails_over, without_engine, prepared } = kind;
        let (gateway, backend) = Gateway::in_memory_with(Options::default());
        let job = match prepared {
            Some(state) => {
                let job = state.job_named("default").expect("it is prepared");
                backend.replace(state);
                job
            }
            None => {
                raise_level(&gateway).await;
                create_job(&gateway).await
            }
        };
        let (lines, kills) = (Lines::new(), 0);
        let process = Process::serve(&gateway, &lines, kills, patience, !without_engine).await;
        let address = process.address.clone();
        let channel = lines.channel(&address).await;
        let process = Some(process);
        Self { gateway, backend, job, address, lines, channel, fails_over, patience, process, kills }
    }

    /// The node that leads is killed, with its front end, its engine, its connections and the calls in them. Another
    /// one leads, at another address, with what was in the log, which comes to it as a snapshot does.
    pub(crate) async fn kill_leader(&mut self) {
        self.backend.depose();
        self.process = None;
        let state = self.backend.state();
        let (gateway, backend) = Gateway::in_memory_with(Options::default());
        backend.replace(state);
        self.kills += 1;
        for _ in 0..self.kills {
            backend.elect();
        }
        let process = Process::serve(&gateway, &self.lines, self.kills, self.patience, true).await;
        self.address.clone_from(&process.address);
        self.channel = self.lines.channel(&self.address).await;
        (self.gateway, self.backend, self.process) = (gateway, backend, Some(process));
    }

    /// Another connection to the node.
    pub(crate) async fn connect(&self) -> Channel {
        self.lines.channel(&self.address).await
    }

    /// The leader notices that peers are silent, as its watchdog does after a while.
    pub(crate) async fn expire(&self, peers: Vec<Peer>) {
        let scope = Scope { job: self.job, service: None };
        let command = ray::Command::Lead { scope, decision: Decision::Expire { peers } };
        self.gateway.submit(Command::Ray(command)).await.expect("in memory").expect("never refused");
    }

    pub(crate) fn scheduler(&self) -> SchedulerClient<Channel> {
        SchedulerClient::new(self.channel.clone()).max_encoding_message_size(2 * MESSAGE_BYTES_MAX)
    }

    pub(crate) fn ray(&self) -> RayClient<Channel> {
        RayClient::new(self.channel.clone())
    }

    pub(crate) fn batches(&self) -> RayLineClient<Channel> {
        RayLineClient::new(self.channel.clone())
    }

    pub(crate) fn membership(&self) -> MembershipClient<Channel> {
        MembershipClient::new(self.channel.clone())
    }

    /// A store that is registered and served.
    pub(crate) async fn store(&self) -> Store {
        Store::start(self).await
    }

    /// A worker that is registered and served, and has not asked for a task yet.
    pub(crate) async fn new_worker(&self, store: &Store) -> Worker {
        Worker::start(self, store, &[]).await
    }

    /// A worker that can execute these functions, each with so many results, and waits for tasks.
    pub(crate) async fn worker(&self, store: &Store, functions: &[(&'static str, u64)]) -> Worker {
        let worker = self.new_worker(store).await;
        self.idle(worker.id).await;
        for (name, results) in functions {
            self.function(worker.id, name, *results).await;
        }
        worker
    }

    /// A driver.
    pub(crate) async fn driver(&self, store: &Store) -> u64 {
        let request = pb::RegisterWorkerRequest {
            node_ip_address: HOST.to_owned(),
            objstore_address: store.address.clone(),
            is_driver: true,
        };
        self.scheduler().register_worker(request).await.expect("registered").into_inner().workerid
    }

    pub(crate) async fn function(&self, worker: u64, name: &'static str, results: u64) {
        let request =
            pb::RegisterFunctionRequest { workerid: worker, fnname: name.into(), num_return_vals: results };
        self.scheduler().register_function(request).await.expect("registered");
        self.step();
    }

    /// Submits a task that is accepted; its results.
    pub(crate) async fn submit(&self, from: u64, name: &'static str, arg: Vec<pb::Value>) -> Vec<u64> {
        let reply = self.try_submit(from, name, arg).await.expect("submitted");
        assert!(reply.function_registered, "{name} is registered");
        self.step();
        reply.result
    }

    pub(crate) async fn try_submit(
        &self,
        from: u64,
        name: &'static str,
        arg: Vec<pb::Value>,
    ) -> Result<pb::SubmitTaskReply, Status> {
        let request = submission(from, name, arg);
        self.scheduler().submit_task(request).await.map(tonic::Response::into_inner)
    }

    pub(crate) async fn put(&self, from: u64) -> u64 {
        let request = pb::PutObjRequest { workerid: from, hold: false };
        let object = self.scheduler().put_obj(request).await.expect("put").into_inner().objectid;
        self.step();
        object
    }

    pub(crate) async fn get(&self, from: u64, object: u64) {
        let request = pb::RequestObjRequest { workerid: from, objectid: object };
        self.scheduler().request_obj(request).await.expect("requested");
        self.step();
    }

    pub(crate) async fn alias(&self, alias: u64, target: u64) -> Result<(), Status> {
        let request = pb::AliasObjectIDsRequest { alias_objectid: alias, target_objectid: target };
        let aliased = self.scheduler().alias_object_i_ds(request).await.map(drop);
        self.step();
        aliased
    }

    /// The store has the object, and says so: in this order, or a new leader that asks in between would hear that it
    /// has lost it.
    pub(crate) async fn ready(&self, object: u64, store: &Store) {
        store.hold(object);
        let request = pb::ObjReadyRequest { objectid: object, objstoreid: store.id };
        self.scheduler().obj_ready(request).await.expect("ready");
        self.step();
    }

    /// A store says that an object does not come: not from that address, or never, of which it has told all who wait.
    pub(crate) async fn fetch_failed(
        &self,
        object: u64,
        store: u64,
        absent_at: &str,
        told: bool,
    ) -> RayResult {
        let (objstoreid, objectid, absent_at) = (store, object, absent_at.to_owned());
        let report = RayFetchFailedRequest { objstoreid, objectid, absent_at, told };
        let call = RayCall { call: Some(Call::FetchFailed(report)), ..RayCall::default() };
        let request = RayBatchRequest { workerid: None, calls: vec![call] };
        let answer = self.ray().batch(request).await.expect("answered").into_inner();
        answer.results.into_iter().next().expect("one result")
    }

    pub(crate) async fn inc(&self, objects: &[u64]) {
        let request = pb::IncrementRefCountRequest { objectid: objects.to_vec() };
        self.scheduler().increment_ref_count(request).await.expect("incremented");
        self.step();
    }

    pub(crate) async fn dec(&self, objects: &[u64]) {
        self.try_dec(objects).await.expect("decremented");
        self.step();
    }

    pub(crate) async fn try_dec(&self, objects: &[u64]) -> Result<(), Status> {
        let request = pb::DecrementRefCountRequest { objectid: objects.to_vec() };
        self.scheduler().decrement_ref_count(request).await.map(drop)
    }

    pub(crate) async fn contain(&self, object: u64, contained: &[u64]) -> Result<(), Status> {
        let contained_objectid = contained.to_vec();
        let request = pb::AddContainedObjectIDsRequest { objectid: object, contained_objectid };
        self.scheduler().add_contained_object_i_ds(request).await.map(drop)
    }

    /// The worker waits for its first task, or says so once more.
    pub(crate) async fn idle(&self, worker: u64) {
        let request = pb::ReadyForNewTaskRequest { workerid: worker, previous_task_info: None };
        self.scheduler().ready_for_new_task(request).await.expect("idle");
        self.step();
    }

    /// The worker's task succeeded.
    pub(crate) async fn done(&self, worker: u64) {
        self.report(worker, true, "").await;
    }

    pub(crate) async fn failed(&self, worker: u64, error: &'static str) {
        self.report(worker, false, error).await;
    }

    async fn report(&self, worker: u64, task_succeeded: bool, error: &'static str) {
        let previous =
            pb::ready_for_new_task_request::PreviousTaskInfo { task_succeeded, error_message: error.into() };
        let request = pb::ReadyForNewTaskRequest { workerid: worker, previous_task_info: Some(previous) };
        self.scheduler().ready_for_new_task(request).await.expect("reported");
        self.step();
    }

    pub(crate) async fn export(&self, implementation: &'static str) {
        let function = pb::Function { implementation: implementation.into() };
        let request = pb::ExportFunctionRequest { function: Some(function) };
        self.scheduler().export_function(request).await.expect("exported");
        self.step();
    }

    pub(crate) async fn export_variable(&self, name: &'static str) {
        let variable = pb::ReusableVar { name: name.into(), ..Default::default() };
        let request = pb::ExportReusableVariableRequest { reusable_variable: Some(variable) };
        self.scheduler().export_reusable_variable(request).await.expect("exported");
        self.step();
    }

    pub(crate) async fn kill_workers(&self) -> bool {
        let reply = self.scheduler().kill_workers(pb::KillWorkersRequest {}).await.expect("answered");
        reply.into_inner().success
    }

    pub(crate) async fn info(&self) -> pb::SchedulerInfoReply {
        let reply = self.scheduler().scheduler_info(pb::SchedulerInfoRequest {}).await;
        reply.expect("answered").into_inner()
    }

    pub(crate) async fn task_info(&self) -> pb::TaskInfoReply {
        self.scheduler().task_info(pb::TaskInfoRequest {}).await.expect("answered").into_inner()
    }

    /// The count of every object, as upstream's tests read them: -1 is deallocated.
    pub(crate) async fn counts(&self) -> Vec<i64> {
        self.info().await.reference_count.into_iter().map(u64::cast_signed).collect()
    }

    /// How often the object is referred to.
    pub(crate) async fn count(&self, object: u64) -> i64 {
        self.counts().await[usize::try_from(object).expect("small")]
    }

    pub(crate) fn availability(&self, object: u64) -> Option<Availability> {
        self.backend.state().ray(self.job)?.availability(ObjectId(object))
    }

    /// The scheduler as it is; equal to another look's as long as nothing changes it.
    pub(crate) fn seen(&self) -> Option<Ray> {
        self.backend.state().ray(self.job).cloned()
    }

    pub(crate) fn totals(&self) -> Totals {
        self.backend.state().ray(self.job).map(Ray::totals).unwrap_or_default()
    }

    /// Waits until every order was carried out and there is nothing to plan: what has not come to a peer by then does
    /// not come.
    pub(crate) async fn settled(&self) {
        until("everything is settled", || {
            let state = self.backend.state();
            state
                .ray(self.job)
                .is_none_or(|ray| ray.totals().orders == 0 && ray.plan(state.now_ms(), 1).is_empty())
        })
        .await;
    }

    fn step(&self) {
        if self.fails_over {
            self.fail_over();
        }
    }

    /// Another leader begins, with nothing but the state.
    pub(crate) fn fail_over(&self) {
        self.backend.depose();
        self.backend.elect();
    }
}

/// A task, as a driver or worker submits it.
pub(crate) fn submission(from: u64, name: &'static str, arg: Vec<pb::Value>) -> pb::SubmitTaskRequest {
    let task = pb::Task { name: name.into(), arg, result: vec![] };
    pb::SubmitTaskRequest { workerid: from, task: Some(task) }
}

/// An argument by reference.
pub(crate) fn by_id(id: u64) -> pb::Value {
    pb::Value { id, obj: None }
}

/// An argument by value, with one id inside.
pub(crate) fn holding(id: u64) -> pb::Value {
    let inner = pb::Obj { objectid_data: Some(pb::ObjId { data: id }), ..Default::default() };
    let list = pb::List { elem: vec![inner] };
    pb::Value { id: 0, obj: Some(pb::Obj { list_data: Some(list), ..Default::default() }) }
}

/// A call with headers.
pub(crate) fn with<M>(message: M, headers: &[(&'static str, &str)]) -> Request<M> {
    let mut request = Request::new(message);
    for (key, value) in headers {
        request.metadata_mut().insert(*key, value.parse().expect("a header"));
    }
    request
}

/// The reason word of a refusal.
pub(crate) fn reason(status: &Status) -> &str {
    let word = status.metadata().get(tripod_proto::metadata::RAY_REASON);
    word.map_or("", |word| word.to_str().expect("a word"))
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    tripod_wait::until(what, || holds().then_some(())).await;
}
