//! A scripted worker.

use tonic::service::Routes;
use tonic::{Request, Response, Status};
use tripod_proto::ray as pb;
use tripod_proto::ray::worker_service_server::{WorkerService, WorkerServiceServer};

use super::peer::{Calls, Port};
use super::store::Store;
use super::{Cluster, with};

/// What a worker is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Call {
    Execute(pb::ExecuteTaskRequest),
    Function(String),
    Variable(String),
    Die,
}

/// A worker: where it listens, and what it was told.
pub(crate) struct Worker {
    pub(crate) id: u64,
    pub(crate) address: String,
    pub(crate) calls: Calls<Call>,
    /// The numbers of what it was told to import.
    pub(crate) exports: Calls<Option<u64>>,
    port: Option<Port>,
}

impl Worker {
    /// Registers with these headers, and listens where it is told to.
    pub(crate) async fn start(cluster: &Cluster, store: &Store, headers: &[(&'static str, &str)]) -> Self {
        let request = pb::RegisterWorkerRequest {
            node_ip_address: cluster.host.to_string(),
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
            port: None,
        };
        worker.listen().await;
        worker
    }

    /// Begins to listen, again.
    pub(crate) async fn listen(&mut self) {
        let service =
            WorkerServiceServer::new(Script { calls: self.calls.clone(), exports: self.exports.clone() });
        let address = self.address.parse().expect("an address");
        self.port = Some(Port::serve(address, Routes::new(service)).await);
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
