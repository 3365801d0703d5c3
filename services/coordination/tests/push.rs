//! Errors told to tasks at their own addresses.

mod support;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message;
use support::until;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::{Status, body};
use tripod_coordination::push;
use tripod_gateway::{Gateway, MemoryBackend};
use tripod_lines::Lines;
use tripod_proto::raw::RawCodec;
use tripod_proto::tensorflow as pb;
use tripod_state::ids::{Incarnation, JobId, ServiceIncarnation, TaskId};
use tripod_state::job::{Group, Listener, Spec};
use tripod_state::{Answer, Command, Scope, job, task};

/// Long enough for a call that should not be made.
const QUIET: Duration = Duration::from_secs(60);

/// What stands at a task's address.
#[derive(Clone, Default)]
struct Member {
    told: Arc<Mutex<Vec<pb::ReportErrorToTaskRequest>>>,
    /// Calls that it still refuses.
    refusals: Arc<Mutex<u32>>,
}

impl Member {
    fn listen(&self, lines: &Lines, place: &str) {
        let path = "/tensorflow.CoordinationService/ReportErrorToTask";
        let router = axum::Router::new().route(path, post(answer)).with_state(self.clone());
        let serving = Server::builder().add_routes(Routes::from(router));
        tokio::spawn(serving.serve_with_incoming(lines.listen(place)));
    }

    fn hear(&self, message: &[u8]) -> Result<Bytes, Status> {
        let mut refusals = self.refusals.lock();
        if *refusals > 0 {
            *refusals -= 1;
            return Err(Status::unavailable("not yet"));
        }
        let request = pb::ReportErrorToTaskRequest::decode(message).expect("a request");
        self.told.lock().push(request);
        Ok(Bytes::new())
    }

    fn times(&self) -> usize {
        self.told.lock().len()
    }
}

async fn answer(State(member): State<Member>, request: Request) -> Response<body::Body> {
    let hear = move |request: tonic::Request<Bytes>| {
        let heard = member.hear(&request.into_inner());
        async move { heard.map(tonic::Response::new) }
    };
    tonic::server::Grpc::new(RawCodec).unary(tower::service_fn(hear), request).await
}

/// A job whose two workers listen, and a chief that does not.
struct Stage {
    gateway: Gateway,
    backend: Arc<MemoryBackend>,
    job: JobId,
    members: [Member; 2],
    lines: Lines,
}

impl Stage {
    async fn set() -> Self {
        let (gateway, backend) = Gateway::in_memory();
        let members = [Member::default(), Member::default()];
        let (lines, mut listeners) = (Lines::new(), Vec::new());
        for (task, member) in (1..).zip(&members) {
            let address = format!("worker-{task}:2222");
            member.listen(&lines, &address);
            listeners.push(Listener { task: TaskId(task), address });
        }
        let group = |name: &str, tasks| Group { name: name.to_owned(), tasks };
        let groups = vec![group("chief", 1), group("worker", 2)];
        let spec = Spec { groups, listeners, ..Spec::of_tasks(3) };
        let command = job::Command::Create { name: "job".to_owned(), spec, service: ServiceIncarnation(7) };
        let Ok(Ok(Answer::Job(job))) = gateway.submit(Command::Job(command)).await else { panic!("no job") };
        let stage = Self { gateway, backend, job: job.id, members, lines };
        for task in 0..3_i32 {
            let incarnation = Incarnation(u64::from(task.unsigned_abs()) + 1);
            let task = TaskId(task);
            let scope = stage.scope();
            let protocol = task::Protocol::TensorFlow;
            let recoverable = false;
            stage.submit(task::Command::Register { scope, task, incarnation, recoverable, protocol }).await;
        }
        stage
    }

    fn scope(&self) -> Scope {
        Scope { job: self.job, service: None }
    }

    async fn submit(&self, command: task::Command) {
        let reply = self.gateway.submit(Command::Task(command)).await.expect("in memory");
        reply.expect("accepted");
    }

    async fn report(&self, task: TaskId) {
        let message = "disk is full".to_owned();
        self.submit(task::Command::ReportError { scope: self.scope(), task, code: 8, message }).await;
    }

    fn run(&self) -> JoinHandle<()> {
        tokio::spawn(push::run_over(self.gateway.clone(), self.lines.to_connect()))
    }

    async fn until_all_told(&self) {
        until("nobody is left to be told", || self.backend.state().untold().is_empty()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_connected_task_but_the_origin_is_told() {
    let stage = Stage::set().await;
    stage.run();
    stage.report(TaskId(1)).await;
    stage.until_all_told().await;
    assert_eq!((stage.members[0].times(), stage.members[1].times()), (0, 1));
    let origin = pb::CoordinatedTask { job_name: "worker".to_owned(), task_id: 0, recoverable: false };
    let payload = pb::CoordinationServiceError { is_reported_error: true, source_task: Some(origin) };
    let told = pb::ReportErrorToTaskRequest {
        error_code: 8,
        error_message: "disk is full".to_owned(),
        error_payload: Some(payload),
    };
    assert_eq!(stage.members[1].told.lock()[0], told);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_cannot_be_told_is_called_again_and_nobody_waits_for_it() {
    let stage = Stage::set().await;
    *stage.members[0].refusals.lock() = 2;
    stage.run();
    stage.report(TaskId(0)).await;
    until("the other one is told", || stage.members[1].times() == 1).await;
    stage.until_all_told().await;
    assert_eq!((stage.members[0].times(), stage.members[1].times()), (1, 1));
    assert_eq!(*stage.members[0].refusals.lock(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_leaves_is_given_up() {
    let stage = Stage::set().await;
    *stage.members[0].refusals.lock() = u32::MAX;
    stage.run();
    stage.report(TaskId(0)).await;
    until("it was called", || *stage.members[0].refusals.lock() < u32::MAX).await;
    stage.submit(task::Command::Reset { scope: stage.scope(), task: TaskId(1) }).await;
    stage.until_all_told().await;
    assert_eq!(stage.members[0].times(), 0);
}

#[tokio::test(start_paused = true)]
async fn only_a_leader_tells_and_a_new_one_tells_what_is_untold() {
    let stage = Stage::set().await;
    stage.report(TaskId(0)).await;
    stage.backend.depose();
    stage.run();
    sleep(QUIET).await;
    assert!(stage.members.iter().all(|member| member.times() == 0), "nobody leads");
    stage.backend.elect();
    stage.until_all_told().await;
    assert!(stage.members.iter().all(|member| member.times() == 1));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_deleted_is_forgotten() {
    let stage = Stage::set().await;
    *stage.members[0].refusals.lock() = u32::MAX;
    let running = stage.run();
    stage.report(TaskId(0)).await;
    until("it was called", || *stage.members[0].refusals.lock() < u32::MAX).await;
    let delete = job::Command::Delete { name: "job".to_owned() };
    stage.gateway.submit(Command::Job(delete)).await.expect("in memory").expect("it exists");
    // A round may have begun before.
    sleep(QUIET).await;
    let called = *stage.members[0].refusals.lock();
    sleep(QUIET).await;
    assert_eq!(*stage.members[0].refusals.lock(), called, "the job is gone");
    assert!(!running.is_finished(), "other jobs may come");
}
