//! A node over a state in memory, with its scheduler, and played workers and stores. All are reached by lines and not by
//! sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use parking_lot::Mutex;
use prost::Message as _;
use tokio::task::JoinSet;
use tokio_stream::Iter;
use tonic::service::Routes;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};
use tripod_dial::{Dialler, Rule};
use tripod_gateway::{FrontEnd as _, Gateway, JobBinding, MemoryBackend};
use tripod_lines::Lines;
use tripod_mars::Mars;
use tripod_proto::mars::v1 as pb;
use tripod_proto::mars::v1::scheduler_client::SchedulerClient;
use tripod_proto::ray;
use tripod_proto::ray::obj_store_server::{ObjStore, ObjStoreServer};
use tripod_proto::ray::scheduler_client::SchedulerClient as RayClient;
use tripod_proto::ray::worker_service_server::{WorkerService, WorkerServiceServer};
use tripod_proto::tripod::v1 as native;
use tripod_proto::tripod::v1::ray_call::Call;
use tripod_proto::tripod::v1::ray_client::RayClient as BatchClient;
use tripod_ray::{Patience, Scheduler};
use tripod_state::ids::{NodeId, ServiceIncarnation};
use tripod_state::member::Addresses;
use tripod_state::{Answer, Command, job, level, member};

const HOST: &str = "10.0.0.1";
const NODE: &str = "10.0.0.1:7700";
/// The function that makes chunks.
const FUNCTION: &str = "tripod.mars.chunk";
/// The port of the next store.
static PORTS: AtomicU16 = AtomicU16::new(10_000);

/// One node that leads.
pub(crate) struct Node {
    pub(crate) backend: Arc<MemoryBackend>,
    pub(crate) gateway: Gateway,
    pub(crate) lines: Lines,
    channel: Channel,
    _tasks: JoinSet<()>,
}

impl Node {
    pub(crate) async fn start() -> Self {
        let (gateway, backend) = Gateway::in_memory();
        let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
        gateway.submit(Command::Level(raise)).await.expect("in memory").expect("raised");
        create_job(&gateway).await;
        announce(&gateway).await;
        let lines = Lines::new();
        let incoming = lines.listen(NODE);
        let mars = Mars::new(&gateway, &Dialler::new(Rule::any())).connecting(lines.to_connect());
        let scheduler =
            Scheduler::with_patience(&gateway, Patience::default()).connecting(lines.to_connect());
        let binding = JobBinding::Named("default".to_owned());
        let routes = mars.add_to(scheduler.add_to(Routes::default(), &binding), &binding);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            Server::builder().add_routes(routes).serve_with_incoming(incoming).await.expect("serving");
        });
        tasks.spawn(mars.background().expect("it proposes"));
        tasks.spawn(scheduler.background().expect("it leads"));
        let channel = lines.channel(NODE).await;
        Self { backend, gateway, lines, channel, _tasks: tasks }
    }

    /// One with a session `s`.
    pub(crate) async fn with_session() -> Self {
        let node = Self::start().await;
        let create = pb::CreateSessionRequest { session_id: "s".to_owned(), ..Default::default() };
        node.mars().create_session(create).await.expect("created");
        node
    }

    pub(crate) fn mars(&self) -> SchedulerClient<Channel> {
        SchedulerClient::new(self.channel.clone()).max_encoding_message_size(64 << 20)
    }

    pub(crate) fn ray(&self) -> RayClient<Channel> {
        RayClient::new(self.channel.clone())
    }

    pub(crate) async fn submit(
        &self,
        graph: &str,
        nodes: Vec<pb::TileableNode>,
    ) -> Result<pb::SubmitGraphResponse, Status> {
        let request = submission(graph, nodes);
        self.mars().submit_tileable_graph(request).await.map(Response::into_inner)
    }

    pub(crate) async fn info(&self, graph: &str, fields: &[&str]) -> Result<pb::GraphInfo, Status> {
        let request = pb::GetGraphInfoRequest {
            session_id: "s".to_owned(),
            graph_key: graph.to_owned(),
            filter_fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        };
        let answer = self.mars().get_tileable_graph_info(request).await?.into_inner();
        assert!(
            answer.header.is_some_and(|header| header.applied_index > 0),
            "answers say as of when they are"
        );
        Ok(answer.info.expect("an info"))
    }

    /// The graph when it has ended.
    pub(crate) async fn ended(&self, graph: &str) -> pb::GraphInfo {
        let request =
            pb::WaitGraphRequest { session_id: "s".to_owned(), graph_key: graph.to_owned(), timeout: None };
        let answer = self.mars().wait_tileable_graph(request).await.expect("it is there").into_inner();
        assert!(answer.finished, "it ends in time: {:?}", answer.info);
        answer.info.expect("an info")
    }
}

pub(crate) fn submission(graph: &str, nodes: Vec<pb::TileableNode>) -> pb::SubmitTileableGraphRequest {
    pb::SubmitTileableGraphRequest {
        session_id: "s".to_owned(),
        graph_key: graph.to_owned(),
        graph: Some(pb::TileableGraph { nodes }),
        ..Default::default()
    }
}

/// A node of a graph of tileables.
pub(crate) fn tileable(key: &str, op_type: &str, payload: &str, inputs: &[&str]) -> pb::TileableNode {
    pb::TileableNode {
        key: key.to_owned(),
        op_type: op_type.to_owned(),
        payload: payload.as_bytes().to_vec().into(),
        inputs: inputs.iter().map(|input| (*input).to_owned()).collect(),
        ..Default::default()
    }
}

/// `a`: eight ones in four chunks; `s`: their sum.
pub(crate) fn sum_of_ones() -> Vec<pb::TileableNode> {
    vec![
        tileable("a", "ones", r#"{"shape":[8],"dtype":"f64","chunks":2}"#, &[]),
        tileable("s", "reduce", r#"{"function":"sum"}"#, &["a"]),
    ]
}

pub(crate) fn chunk(key: &str, inputs: &[&str]) -> pb::ChunkNode {
    pb::ChunkNode {
        key: key.to_owned(),
        op_type: "mine".to_owned(),
        inputs: inputs.iter().map(|input| (*input).to_owned()).collect(),
        retryable: true,
        ..Default::default()
    }
}

async fn create_job(gateway: &Gateway) {
    let (spec, service) = (job::Spec::of_tasks(1), ServiceIncarnation(7));
    let command = job::Command::Create { name: "default".to_owned(), spec, service };
    match gateway.submit(Command::Job(command)).await.expect("in memory") {
        Ok(Answer::Job(_)) => {}
        other => panic!("no job: {other:?}"),
    }
}

async fn announce(gateway: &Gateway) {
    let addresses = Addresses {
        client: NODE.to_owned(),
        http: NODE.to_owned(),
        job_host: HOST.to_owned(),
        job_port_first: 7_700,
        job_port_count: 1,
    };
    let command = member::Command::Announce { node: NodeId(1), addresses };
    gateway.submit(Command::Member(command)).await.expect("in memory").expect("announced");
}

/// Where the next played store listens.
pub(crate) fn next_address() -> String {
    format!("{HOST}:{}", PORTS.fetch_add(1, Ordering::Relaxed))
}

/// What a played worker answers to a chunk: how its task ends.
pub(crate) type Plays = Arc<dyn Fn(&pb::ChunkNode) -> Result<(), String> + Send + Sync>;

/// How a chunk's task ends that does not end: its worker says nothing of it any more.
pub(crate) const HELD: &str = "held";

/// A store with one worker that makes chunks without making them: it says that it has.
pub(crate) struct Machine {
    pub(crate) address: String,
    /// The chunks that it was given, in their order.
    pub(crate) given: Arc<Mutex<Vec<pb::ChunkNode>>>,
    _tasks: JoinSet<()>,
}

impl Machine {
    /// One whose worker makes everything.
    pub(crate) async fn start(node: &Node) -> Self {
        Self::playing(node, Arc::new(|_| Ok(()))).await
    }

    /// One whose worker never says that it has done anything. One that is dropped would not do: a
    /// connection that a node already has to it is still answered.
    pub(crate) async fn holding(node: &Node) -> Self {
        Self::playing(node, Arc::new(|_| Err(HELD.to_owned()))).await
    }

    pub(crate) async fn playing(node: &Node, plays: Plays) -> Self {
        let mut tasks = JoinSet::new();
        let address = next_address();
        let incoming = node.lines.listen(&address);
        tasks.spawn(async move {
            let store = Routes::new(ObjStoreServer::new(EmptyStore));
            Server::builder().add_routes(store).serve_with_incoming(incoming).await.expect("serving");
        });
        let mut ray = node.ray();
        let store = ray::RegisterObjStoreRequest { objstore_address: address.clone() };
        let store = ray.register_obj_store(store).await.expect("registered").into_inner().objstoreid;
        let worker = ray::RegisterWorkerRequest {
            node_ip_address: HOST.to_owned(),
            objstore_address: address.clone(),
            is_driver: false,
        };
        let worker = ray.register_worker(worker).await.expect("registered").into_inner();
        let given = Arc::<Mutex<Vec<pb::ChunkNode>>>::default();
        let played = Played {
            channel: node.channel.clone(),
            store,
            worker: worker.workerid,
            given: Arc::clone(&given),
            plays,
        };
        let incoming = node.lines.listen(&worker.worker_address);
        tasks.spawn(async move {
            let worker = Routes::new(WorkerServiceServer::new(played));
            Server::builder().add_routes(worker).serve_with_incoming(incoming).await.expect("serving");
        });
        let function = ray::RegisterFunctionRequest {
            workerid: worker.workerid,
            fnname: FUNCTION.into(),
            num_return_vals: 1,
        };
        ray.register_function(function).await.expect("registered");
        let idle = ray::ReadyForNewTaskRequest { workerid: worker.workerid, previous_task_info: None };
        ray.ready_for_new_task(idle).await.expect("it is alive");
        Self { address, given, _tasks: tasks }
    }

    /// The keys of what it was given.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.given.lock().iter().map(|chunk| chunk.key.clone()).collect()
    }
}

/// A worker that says what it was told to say.
struct Played {
    channel: Channel,
    store: u64,
    worker: u64,
    given: Arc<Mutex<Vec<pb::ChunkNode>>>,
    plays: Plays,
}

impl Played {
    /// What it says of one task, in one batch; of one that it holds: nothing.
    fn report(&self, asked: &ray::ExecuteTaskRequest) -> Option<native::RayBatchRequest> {
        let task = asked.task.clone().expect("a task");
        assert_eq!(task.name, FUNCTION.as_bytes());
        let value = task.arg[0].obj.clone().expect("the first argument is a value");
        let data = value.pyobj_data.expect("whose bytes are a node's").data;
        let chunk = pb::ChunkNode::decode(data).expect("a node");
        let ended = (self.plays)(&chunk);
        if ended.as_ref().is_err_and(|text| text == HELD) {
            self.given.lock().push(chunk);
            return None;
        }
        let object = task.result[0];
        let run = asked.operationid.map(|operationid| native::RayRun { operationid, attempt: asked.attempt });
        let call = |call| native::RayCall { call: Some(call), run, ..Default::default() };
        let mut calls = Vec::new();
        if ended.is_ok() {
            let extents = chunk.shape.clone().unwrap_or_default().extents;
            // What nobody knew is one element.
            let shape: Vec<u64> =
                extents.into_iter().map(|extent| u64::try_from(extent).unwrap_or(1)).collect();
            let bytes = shape.iter().product::<u64>() * 8;
            let element_type = u32::try_from(chunk.dtype).expect("a number");
            let describe = native::RayDescribeRequest { objectid: object, shape, element_type, bytes };
            calls.push(call(Call::Describe(describe)));
            calls.push(call(Call::Ready(ray::ObjReadyRequest { objectid: object, objstoreid: self.store })));
        }
        let previous = ray::ready_for_new_task_request::PreviousTaskInfo {
            task_succeeded: ended.is_ok(),
            error_message: ended.err().unwrap_or_default().into_bytes().into(),
        };
        calls.push(call(Call::Idle(ray::ReadyForNewTaskRequest {
            workerid: self.worker,
            previous_task_info: Some(previous),
        })));
        self.given.lock().push(chunk);
        Some(native::RayBatchRequest { workerid: Some(self.worker), calls })
    }
}

#[tonic::async_trait]
impl WorkerService for Played {
    async fn execute_task(
        &self,
        request: Request<ray::ExecuteTaskRequest>,
    ) -> Result<Response<ray::ExecuteTaskReply>, Status> {
        let Some(report) = self.report(request.get_ref()) else {
            return Ok(Response::new(ray::ExecuteTaskReply {}));
        };
        let mut ray = BatchClient::new(self.channel.clone());
        // The order is carried out when it is answered; the report comes behind.
        tokio::spawn(async move {
            let told = ray.batch(report).await.expect("told").into_inner();
            let refused: Vec<_> = told.results.iter().filter(|result| result.code != 0).collect();
            assert!(refused.is_empty(), "{refused:?}");
        });
        Ok(Response::new(ray::ExecuteTaskReply {}))
    }

    async fn import_function(
        &self,
        _: Request<ray::ImportFunctionRequest>,
    ) -> Result<Response<ray::ImportFunctionReply>, Status> {
        Ok(Response::new(ray::ImportFunctionReply {}))
    }

    async fn import_reusable_variable(
        &self,
        _: Request<ray::ImportReusableVariableRequest>,
    ) -> Result<Response<ray::AckReply>, Status> {
        Ok(Response::new(ray::AckReply {}))
    }

    async fn die(&self, _: Request<ray::DieRequest>) -> Result<Response<ray::DieReply>, Status> {
        Ok(Response::new(ray::DieReply {}))
    }
}

/// A store that does as it is told, and holds nothing that anybody could read.
pub(crate) struct EmptyStore;

type Acknowledged = Result<Response<ray::AckReply>, Status>;

#[tonic::async_trait]
impl ObjStore for EmptyStore {
    type StreamObjToStream = Iter<std::vec::IntoIter<Result<ray::ObjChunk, Status>>>;

    async fn start_delivery(&self, _: Request<ray::StartDeliveryRequest>) -> Acknowledged {
        Ok(Response::new(ray::AckReply {}))
    }

    async fn stream_obj_to(
        &self,
        _: Request<ray::StreamObjToRequest>,
    ) -> Result<Response<Self::StreamObjToStream>, Status> {
        Err(Status::unimplemented("nothing is fetched from a played store"))
    }

    async fn notify_alias(&self, _: Request<ray::NotifyAliasRequest>) -> Acknowledged {
        Ok(Response::new(ray::AckReply {}))
    }

    async fn deallocate_object(&self, _: Request<ray::DeallocateObjectRequest>) -> Acknowledged {
        Ok(Response::new(ray::AckReply {}))
    }

    async fn obj_store_info(
        &self,
        _: Request<ray::ObjStoreInfoRequest>,
    ) -> Result<Response<ray::ObjStoreInfoReply>, Status> {
        Err(Status::unavailable("it does not say what it holds"))
    }
}
