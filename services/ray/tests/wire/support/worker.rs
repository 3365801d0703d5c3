//! A scripted worker.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_stream::{Stream, StreamExt as _};
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};
use tripod_lines::Lines;
use tripod_proto::metadata;
use tripod_proto::ray as pb;
use tripod_proto::ray::worker_service_server::{WorkerService, WorkerServiceServer};
use tripod_proto::tripod::v1::ray_order::Order;
use tripod_proto::tripod::v1::ray_peer_line_server::{RayPeerLine, RayPeerLineServer};
use tripod_proto::tripod::v1::{RayOrder, RayRun, RayTellRequest, RayTellResponse, RayTold};

use super::peer::{Calls, Port};
use super::store::Store;
use super::{Cluster, HOST, with};

/// What a worker is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Call {
    Execute(pb::ExecuteTaskRequest),
    Function(String),
    Variable(String),
    Die,
    /// The run, and its grace in milliseconds.
    Cancel(RayRun, u64),
}

/// A worker: where it listens, and what it was told.
pub(crate) struct Worker {
    pub(crate) id: u64,
    pub(crate) address: String,
    pub(crate) calls: Calls<Call>,
    /// Messages that came over a stream; `None`: it serves none.
    pub(crate) lined: Option<Arc<AtomicUsize>>,
    /// The numbers of what it was told to import.
    pub(crate) exports: Calls<Option<u64>>,
    lines: Lines,
    port: Option<Port>,
}

impl Worker {
    /// Registers with these headers, and listens where it is told to.
    pub(crate) async fn start(cluster: &Cluster, store: &Store, headers: &[(&'static str, &str)]) -> Self {
        let request = pb::RegisterWorkerRequest {
            node_ip_address: HOST.to_owned(),
            objstore_address: store.address.clone(),
            is_driver: false,
        };
        let reply = cluster.scheduler().register_worker(with(request, headers)).await;
        let reply = reply.expect("registered").into_inner();
        assert_eq!(reply.objstoreid, store.id);
        let mut worker = Self {
            id: reply.workerid,
            address: reply.worker_address,
            calls: Calls::new(),
            exports: Calls::new(),
            lined: None,
            lines: cluster.lines.clone(),
            port: None,
        };
        worker.listen();
        worker
    }

    /// One of ours that takes its orders over a stream.
    pub(crate) async fn start_lined(cluster: &Cluster, store: &Store) -> Self {
        let extended = [(metadata::RAY_EXTENDED, "1"), (metadata::RAY_SLOTS, "8")];
        let mut worker = Self::start(cluster, store, &extended).await;
        worker.die();
        worker.lined = Some(Arc::default());
        worker.listen();
        worker
    }

    /// Begins to listen, again.
    pub(crate) fn listen(&mut self) {
        // Of two ports at one address the older one would close the newer one's place.
        self.port = None;
        let calls = self.calls.clone();
        let script = Script { calls: calls.clone(), exports: self.exports.clone() };
        let mut routes = Routes::new(WorkerServiceServer::new(script));
        if let Some(messages) = self.lined.clone() {
            routes = routes.add_service(RayPeerLineServer::new(Lined { calls, messages }));
        }
        self.port = Some(Port::serve(&self.lines, &self.address, routes));
    }

    /// Its store passes orders on to it from now on. Gives how many messages come that way.
    pub(crate) fn follow(&self, store: &Store) -> Arc<AtomicUsize> {
        let messages = Arc::<AtomicUsize>::default();
        let lined = Lined { calls: self.calls.clone(), messages: Arc::clone(&messages) };
        store.passed.lock().insert(self.id, lined);
        messages
    }

    /// Its process ends.
    pub(crate) fn die(&mut self) {
        self.port = None;
    }

    /// The next task, which must be the next thing that it is told.
    pub(crate) async fn task(&self) -> pb::ExecuteTaskRequest {
        match self.calls.next().await {
            Call::Execute(task) => task,
            other => panic!("no task: {other:?}"),
        }
    }

    /// The name of the next task.
    pub(crate) async fn executes(&self) -> String {
        let task = self.task().await.task.expect("a task");
        String::from_utf8(task.name.to_vec()).expect("a name")
    }
}

struct Script {
    calls: Calls<Call>,
    exports: Calls<Option<u64>>,
}

/// Orders over streams.
#[derive(Clone)]
pub(crate) struct Lined {
    calls: Calls<Call>,
    messages: Arc<AtomicUsize>,
}

#[tonic::async_trait]
impl RayPeerLine for Lined {
    type OrdersStream = Pin<Box<dyn Stream<Item = Result<RayTellResponse, Status>> + Send>>;

    async fn orders(
        &self,
        request: Request<Streaming<RayTellRequest>>,
    ) -> Result<Response<Self::OrdersStream>, Status> {
        let (calls, messages) = (self.calls.clone(), Arc::clone(&self.messages));
        let answers = request.into_inner().map(move |message| {
            messages.fetch_add(1, Ordering::SeqCst);
            let mut orders = Vec::new();
            for order in message?.orders {
                let told = calls.note(read(order));
                orders.push(told.as_ref().err().map_or_else(RayTold::default, |status| RayTold {
                    code: status.code() as i32,
                    text: status.message().to_owned(),
                }));
                if told.is_err() {
                    break;
                }
            }
            Ok(RayTellResponse { orders })
        });
        Ok(Response::new(Box::pin(answers)))
    }
}

fn read(order: RayOrder) -> Call {
    match order.order.expect("an order") {
        Order::Execute(task) => Call::Execute(task),
        Order::Function(import) => Call::Function(text(&import.function.expect("a function").implementation)),
        Order::Variable(import) => Call::Variable(text(&import.reusable_variable.expect("a variable").name)),
        Order::Die(_) => Call::Die,
        Order::Cancel(cancel) => Call::Cancel(cancel.run.expect("a run"), cancel.grace_ms),
        other => panic!("no order for a worker: {other:?}"),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[tonic::async_trait]
impl WorkerService for Script {
    async fn execute_task(
        &self,
        request: Request<pb::ExecuteTaskRequest>,
    ) -> Result<Response<pb::ExecuteTaskReply>, Status> {
        self.calls.note(Call::Execute(request.into_inner()))?;
        Ok(Response::new(pb::ExecuteTaskReply {}))
    }

    async fn import_function(
        &self,
        request: Request<pb::ImportFunctionRequest>,
    ) -> Result<Response<pb::ImportFunctionReply>, Status> {
        let request = request.into_inner();
        self.exports.note(request.exportid)?;
        let function = request.function.expect("a function");
        self.calls.note(Call::Function(text(&function.implementation)))?;
        Ok(Response::new(pb::ImportFunctionReply {}))
    }

    async fn import_reusable_variable(
        &self,
        request: Request<pb::ImportReusableVariableRequest>,
    ) -> Result<Response<pb::AckReply>, Status> {
        let request = request.into_inner();
        self.exports.note(request.exportid)?;
        let variable = request.reusable_variable.expect("a variable");
        self.calls.note(Call::Variable(text(&variable.name)))?;
        Ok(Response::new(pb::AckReply {}))
    }

    async fn die(&self, _: Request<pb::DieRequest>) -> Result<Response<pb::DieReply>, Status> {
        self.calls.note(Call::Die)?;
        Ok(Response::new(pb::DieReply {}))
    }
}
