//! Barriers and heartbeats against a service of dialect N that only counts.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Barrier;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tripod_load::closed_loop::Plan;
use tripod_load::report::Report;
use tripod_load::{barrier, heartbeat};
use tripod_proto::xla::coordination as pb;
use tripod_proto::xla::coordination::coordination_service_server::{
    CoordinationService, CoordinationServiceServer,
};

const TASKS: usize = 5;
const SERVICE: u64 = 77;
const PLAN: Plan = Plan { warm_up: Duration::from_millis(20), measured: Duration::from_millis(150) };

/// What the tasks have done.
#[derive(Default)]
struct Seen {
    incarnations: BTreeMap<i32, u64>,
    beats: BTreeMap<i32, u64>,
    /// By task, the counters that it called, in order.
    rounds: BTreeMap<i32, Vec<i64>>,
    left: usize,
}

#[derive(Clone)]
struct Service {
    seen: Arc<Mutex<Seen>>,
    together: Arc<Barrier>,
    /// Told in heartbeat replies; a wrong one is fatal to JAX's client.
    heartbeat_service: u64,
}

type Answer<T> = Result<Response<T>, Status>;

fn none<T>() -> Answer<T> {
    Err(Status::unimplemented("not part of the load"))
}

impl Service {
    fn known(&self, incarnations: Option<&pb::Incarnations>, task: i32) -> Result<(), Status> {
        let given = incarnations.ok_or_else(|| Status::invalid_argument("no incarnations"))?;
        let own = self.seen.lock().unwrap().incarnations.get(&task).copied();
        if given.service_incarnation != SERVICE
            || own != Some(given.task_incarnation)
            || given.task_id != task
        {
            return Err(Status::internal(format!("wrong incarnations of task {task}: {given:?}")));
        }
        Ok(())
    }
}

#[tonic::async_trait]
impl CoordinationService for Service {
    async fn register_task(
        &self,
        request: Request<pb::RegisterTaskRequest>,
    ) -> Answer<pb::RegisterTaskResponse> {
        let request = request.into_inner();
        self.seen.lock().unwrap().incarnations.insert(request.source_task_id, request.incarnation);
        self.together.wait().await;
        Ok(Response::new(pb::RegisterTaskResponse { service_incarnation: SERVICE }))
    }

    async fn heartbeat(&self, request: Request<pb::HeartbeatRequest>) -> Answer<pb::HeartbeatResponse> {
        let request = request.into_inner();
        self.known(request.incarnations.as_ref(), request.source_task_id)?;
        *self.seen.lock().unwrap().beats.entry(request.source_task_id).or_default() += 1;
        Ok(Response::new(pb::HeartbeatResponse { service_incarnation: self.heartbeat_service }))
    }

    async fn barrier(&self, request: Request<pb::BarrierRequest>) -> Answer<pb::BarrierResponse> {
        let request = request.into_inner();
        self.known(request.incarnations.as_ref(), request.source_task_id)?;
        self.seen.lock().unwrap().rounds.entry(request.source_task_id).or_default().push(request.counter);
        self.together.wait().await;
        Ok(Response::new(pb::BarrierResponse { counter: request.counter }))
    }

    async fn shutdown_task(
        &self,
        request: Request<pb::ShutdownTaskRequest>,
    ) -> Answer<pb::ShutdownTaskResponse> {
        let request = request.into_inner();
        self.known(request.incarnations.as_ref(), request.source_task_id)?;
        self.together.wait().await;
        self.seen.lock().unwrap().left += 1;
        Ok(Response::new(pb::ShutdownTaskResponse {}))
    }

    async fn watch_tasks(&self, _: Request<pb::WatchTasksRequest>) -> Answer<pb::WatchTasksResponse> {
        none()
    }
    async fn insert_key_value(
        &self,
        _: Request<pb::InsertKeyValueRequest>,
    ) -> Answer<pb::InsertKeyValueResponse> {
        none()
    }
    async fn get_key_value(&self, _: Request<pb::GetKeyValueRequest>) -> Answer<pb::GetKeyValueResponse> {
        none()
    }
    async fn try_get_key_value(
        &self,
        _: Request<pb::TryGetKeyValueRequest>,
    ) -> Answer<pb::TryGetKeyValueResponse> {
        none()
    }
    async fn increment_key_value(
        &self,
        _: Request<pb::IncrementKeyValueRequest>,
    ) -> Answer<pb::IncrementKeyValueResponse> {
        none()
    }
    async fn get_key_value_dir(
        &self,
        _: Request<pb::GetKeyValueDirRequest>,
    ) -> Answer<pb::GetKeyValueDirResponse> {
        none()
    }
    async fn delete_key_value(
        &self,
        _: Request<pb::DeleteKeyValueRequest>,
    ) -> Answer<pb::DeleteKeyValueResponse> {
        none()
    }
    async fn cancel_barrier(
        &self,
        _: Request<pb::CancelBarrierRequest>,
    ) -> Answer<pb::CancelBarrierResponse> {
        none()
    }
    async fn get_alive_tasks(
        &self,
        _: Request<pb::GetAliveTasksRequest>,
    ) -> Answer<pb::GetAliveTasksResponse> {
        none()
    }
    async fn poll_for_error(&self, _: Request<pb::PollForErrorRequest>) -> Answer<pb::PollForErrorResponse> {
        none()
    }
    async fn report_error_to_service(
        &self,
        _: Request<pb::ReportErrorToServiceRequest>,
    ) -> Answer<pb::ReportErrorToServiceResponse> {
        none()
    }
}

fn serve(heartbeat_service: u64) -> (Arc<Mutex<Seen>>, String) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let together = Arc::new(Barrier::new(TASKS));
    let service = Service { seen: Arc::clone(&seen), together, heartbeat_service };
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap().to_string();
    let server = Server::builder().add_service(CoordinationServiceServer::new(service));
    tokio::spawn(server.serve_with_incoming(incoming));
    (seen, address)
}

/// A run of all tasks in which something was measured, and what they have done: on a busy machine nothing may come of a
/// tenth of a second.
async fn run(
    heartbeat_service: u64,
    load: impl AsyncFn(String) -> anyhow::Result<Report>,
) -> (Arc<Mutex<Seen>>, Report) {
    tripod_wait::until_async("something to be measured", || async {
        let (seen, address) = serve(heartbeat_service);
        let report = load(address).await.unwrap();
        (report.ops + report.errors > 0).then_some((seen, report))
    })
    .await
}

async fn beats(address: String) -> anyhow::Result<Report> {
    heartbeat::run("fake", &[address], TASKS, PLAN).await
}

#[tokio::test]
async fn all_tasks_meet_in_the_same_rounds_and_leave_together() {
    let barriers = async |address| barrier::run("fake", &[address], TASKS, PLAN).await;
    let (seen, report) = run(SERVICE, barriers).await;
    let seen = seen.lock().unwrap();
    let rounds = &seen.rounds[&0];
    assert_eq!(*rounds, (0..rounds.len() as i64).collect::<Vec<i64>>(), "counters rise one by one");
    assert_eq!(seen.rounds.len(), TASKS);
    assert!(seen.rounds.values().all(|of_task| of_task == rounds), "nobody is left waiting in a round");
    assert_eq!(seen.left, TASKS);
    assert_eq!(report.errors, 0, "{:?}", report.first_errors);
    assert!(report.ops > 0 && report.ops <= (rounds.len() * TASKS) as u64);
    assert!(report.rounds_per_s.is_some());
}

#[tokio::test]
async fn every_task_beats() {
    let (seen, report) = run(SERVICE, beats).await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.beats.len(), TASKS);
    assert!(seen.beats.values().sum::<u64>() >= report.ops && report.ops > 0);
    assert_eq!((report.errors, seen.left), (0, TASKS));
}

#[tokio::test]
async fn a_beat_that_another_incarnation_answers_is_an_error() {
    let (_seen, report) = run(SERVICE + 1, beats).await;
    assert_eq!(report.ops, 0);
    assert!(report.first_errors[0].contains("another service incarnation"), "{:?}", report.first_errors);
}
