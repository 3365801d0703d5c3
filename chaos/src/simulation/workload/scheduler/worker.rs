//! A simulated worker: runs what it is given, in order, and tells what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand::RngExt as _;
use tokio::sync::mpsc;
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use tripod_proto::metadata;
use tripod_proto::ray as pb;
use tripod_proto::ray::ready_for_new_task_request::PreviousTaskInfo;
use tripod_proto::ray::scheduler_client::SchedulerClient;
use tripod_proto::ray::worker_service_server::{WorkerService, WorkerServiceServer};
use tripod_proto::tripod::v1::heartbeat_request::Kind;
use tripod_proto::tripod::v1::ray_call::Call;
use tripod_proto::tripod::v1::{RayCall, RayRun};

use super::Machine;
use super::beat::{self, Beats, Standing};
use super::calls::{Calls, Gone, call, decrement};
use super::function::{FUNCTIONS, Output, Running, holding};
use super::life::Life;
use super::shelf::Shelf;
use super::value::Value;
use crate::simulation::client::Client;
use crate::simulation::network;
use crate::simulation::witness::now;

/// How many tasks a worker may be given at a time. Who takes more must give back those that it has not begun when it
/// waits within one: what it waits for may be made by them.
const SLOTS: u64 = 1;
/// How long a task takes at most, in milliseconds.
const TASK_MS_MAX: u64 = 120;

/// Lives as a worker of the store at that port, until it is given up.
pub(super) async fn live(machine: &Machine, store_port: u16, client: Client, life: Life) {
    let mut calls = Calls::new(client);
    let register = pb::RegisterWorkerRequest {
        node_ip_address: machine.ip.clone(),
        objstore_address: machine.address(store_port),
        is_driver: false,
    };
    let headers = [(metadata::RAY_EXTENDED, 1), (metadata::RAY_SLOTS, SLOTS)];
    let send = async |channel, request| SchedulerClient::new(channel).register_worker(request).await;
    let Ok(registered) = calls.change(register, &headers, send).await else { return };
    let id = registered.workerid;
    calls.process = Some(id);
    let Some(shelf) = machine.shelf(&registered.objstore_address, registered.objstoreid) else { return };
    machine.witness.note(now(), "scheduler", format_args!("worker {id} of store {}", shelf.store));
    let port = registered.worker_address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let Some(port) = port else { return };
    let Ok(incoming) = network::connections(port, life.end()).await else { return };
    let (inbox, tasks) = mpsc::unbounded_channel();
    let service = Service { inbox, life: life.clone(), seen: Mutex::default() };
    let server = Server::builder().add_service(WorkerServiceServer::new(service));
    let (beats, standing) = Beats::new(Kind::Worker, id);
    let beating = calls.client.sibling_here();
    let mut worker = Worker { machine, calls, shelf, life: life.clone(), standing };
    tokio::select! {
        biased;
        _ = server.serve_with_incoming(incoming) => {}
        () = beats.run(beating, &life) => {}
        _ = worker.run(tasks) => {}
    }
    machine.witness.note(now(), "scheduler", format_args!("worker {id} begins anew"));
}

struct Worker<'a> {
    machine: &'a Machine,
    calls: Calls,
    shelf: Arc<Shelf>,
    life: Life,
    standing: Standing,
}

impl Worker<'_> {
    async fn run(&mut self, mut tasks: mpsc::UnboundedReceiver<pb::ExecuteTaskRequest>) -> Result<(), Gone> {
        let workerid = self.calls.process.unwrap_or_default();
        let function = |(name, results): &(&'static str, u64)| {
            let fnname = name.as_bytes().into();
            call(Call::Function(pb::RegisterFunctionRequest { workerid, fnname, num_return_vals: *results }))
        };
        let mut hello: Vec<_> = FUNCTIONS.iter().map(function).collect();
        hello.push(call(Call::Idle(pb::ReadyForNewTaskRequest { workerid, previous_task_info: None })));
        self.calls.batch(hello, &[]).await?;
        while let Some(request) = tasks.recv().await {
            self.life.awake().await;
            beat::good(&mut self.standing).await;
            self.execute(request).await?;
        }
        Ok(())
    }

    async fn execute(&mut self, request: pb::ExecuteTaskRequest) -> Result<(), Gone> {
        let (Some(operationid), attempt) = (request.operationid, request.attempt) else { return Err(Gone) };
        let workerid = self.calls.process.unwrap_or_default();
        let run = RayRun { operationid, attempt };
        let task = request.task.unwrap_or_default();
        let name = String::from_utf8_lossy(&task.name).into_owned();
        let begun = format_args!("worker {workerid} begins {name}, task {operationid}.{attempt}").to_string();
        self.machine.witness.note(now(), "scheduler", format_args!("{begun}"));
        self.machine.witness.scheduled(|rule| rule.begun(operationid, attempt, workerid));
        let mut arguments = Vec::new();
        for argument in &task.arg {
            arguments.push(match &argument.obj {
                None => self.shelf.get(argument.id).await?,
                Some(value) => {
                    let data = value.int_data.as_ref().map(|int| int.data).unwrap_or_default();
                    Value::Number(data.cast_unsigned())
                }
            });
        }
        let took = self.calls.client.dice.random_range(1..TASK_MS_MAX);
        tokio::time::sleep(Duration::from_millis(took)).await;
        self.life.awake().await;
        let outputs = Running::new(&mut self.calls, &self.shelf).call(&name, &arguments).await?;
        self.life.awake().await;
        let wanted = |place: usize| request.store_output.get(place).copied().unwrap_or(true);
        let mut calls = Vec::new();
        let mut failed = None;
        for (place, result) in task.result.iter().enumerate() {
            match outputs.get(place.min(outputs.len() - 1)) {
                Some(Output::Value(value)) => {
                    if let Value::Error { text, .. } = value {
                        failed = Some(text.clone());
                    }
                    if wanted(place) {
                        self.shelf.put(*result, value.clone(), Some(run))?;
                    }
                    if let Value::Holding(inner) = value {
                        calls.extend(if wanted(place) {
                            holding(*result, *inner)
                        } else {
                            vec![decrement(vec![*inner])]
                        });
                    }
                }
                Some(Output::Object(object)) => {
                    let alias =
                        pb::AliasObjectIDsRequest { alias_objectid: *result, target_objectid: *object };
                    calls.push(RayCall { run: Some(run), ..call(Call::Alias(alias)) });
                    calls.push(decrement(vec![*object]));
                }
                None => {}
            }
        }
        let by_reference = |argument: &pb::Value| argument.obj.is_none().then_some(argument.id);
        let held = task.arg.iter().filter_map(by_reference).chain(task.result.iter().copied());
        calls.push(decrement(held.collect()));
        let previous = PreviousTaskInfo {
            task_succeeded: failed.is_none(),
            error_message: failed.unwrap_or_default().into_bytes().into(),
        };
        let idle = pb::ReadyForNewTaskRequest { workerid, previous_task_info: Some(previous) };
        calls.push(RayCall { run: Some(run), ..call(Call::Idle(idle)) });
        let told = self.calls.batch(calls, &["aliased", "contained", "other-attempt", "deallocated"]).await?;
        let accepted = told.last().is_some_and(|result| result.code == 0);
        self.machine.witness.note(now(), "scheduler", format_args!("{begun} and ends it: {accepted}"));
        self.machine.witness.count("tasks that workers ended");
        Ok(())
    }
}

struct Service {
    inbox: mpsc::UnboundedSender<pb::ExecuteTaskRequest>,
    life: Life,
    /// The last attempt of each operation that came.
    seen: Mutex<BTreeMap<u64, u32>>,
}

#[tonic::async_trait]
impl WorkerService for Service {
    async fn execute_task(
        &self,
        request: Request<pb::ExecuteTaskRequest>,
    ) -> Result<Response<pb::ExecuteTaskReply>, Status> {
        self.life.receive().await?;
        let request = request.into_inner();
        let operation = request.operationid.unwrap_or_default();
        let last = self.seen.lock().insert(operation, request.attempt);
        if last.is_none_or(|last| last < request.attempt) {
            // A worker that ends takes no more.
            let _ = self.inbox.send(request);
        } else if let Some(last) = last {
            self.seen.lock().insert(operation, last);
        }
        Ok(Response::new(pb::ExecuteTaskReply {}))
    }

    async fn import_function(
        &self,
        _: Request<pb::ImportFunctionRequest>,
    ) -> Result<Response<pb::ImportFunctionReply>, Status> {
        Ok(Response::new(pb::ImportFunctionReply {}))
    }

    async fn import_reusable_variable(
        &self,
        _: Request<pb::ImportReusableVariableRequest>,
    ) -> Result<Response<pb::AckReply>, Status> {
        Ok(Response::new(pb::AckReply {}))
    }

    async fn die(&self, _: Request<pb::DieRequest>) -> Result<Response<pb::DieReply>, Status> {
        Ok(Response::new(pb::DieReply {}))
    }
}
