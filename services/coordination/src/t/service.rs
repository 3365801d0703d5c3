//! The calls of dialect T: decode, ask the cluster, encode.

use prost::Message as _;
use tonic::metadata::MetadataMap;
use tonic::{Extensions, Request, Status, async_trait};
use tripod_gateway::SetBeat;
use tripod_port::CallContext;
use tripod_proto::metadata;
use tripod_proto::tensorflow as pb;
use tripod_proto::tensorflow::coordination_service_server::CoordinationService;
use tripod_state::ids::{Incarnation, TaskId};
use tripod_state::{Answer, State};

use super::devices::Form;
use super::tasks::{self, NamesTasks};
use super::{decode, encode};
use crate::answer;
use crate::caller::Caller;
use crate::front::{Front, Outcome};
use crate::speaker::Speakers;

/// Answers `tensorflow.CoordinationService`.
pub(crate) struct Service {
    front: Front,
}

impl Service {
    pub(crate) fn new(front: Front) -> Self {
        Self { front }
    }

    /// See [`Front::tell`].
    pub(crate) async fn tell(
        &self,
        request: Request<pb::RegisterTaskRequest>,
        sign: (u64, bool),
    ) -> Result<bool, Status> {
        let (front, request) = self.enter(request).await;
        front.tell(&request, decode::register, sign).await
    }

    /// See [`Front::set_beat`].
    pub(crate) async fn set_beat(&self, request: Request<pb::HeartbeatRequest>) -> Result<SetBeat, Status> {
        let (front, request) = self.enter(request).await;
        front.set_beat(&request, decode::heartbeat).await
    }

    /// What a heartbeat of a living task is answered.
    pub(crate) fn beat_answer(answer: Answer) -> Result<pb::HeartbeatResponse, Status> {
        encode::beat(answer)
    }

    /// Which life of a task makes a call that an agent passes on.
    async fn told_life(&self, metadata: &MetadataMap) -> Option<(TaskId, Incarnation)> {
        let told = metadata.get_bin(metadata::REGISTRATION)?.to_bytes().ok()?;
        let registration = pb::RegisterTaskRequest::decode(told).ok()?;
        let registration = Request::from_parts(metadata.clone(), Extensions::default(), registration);
        let (_, registration) = self.enter(registration).await;
        Some(decode::life(registration.get_ref()))
    }

    /// The call with its tasks by their numbers in the job, and a front that knows their names.
    async fn enter<M>(&self, mut request: Request<M>) -> (Front, Request<M>)
    where
        M: NamesTasks + Send + Sync,
    {
        let mut front = self.front.introduce(&mut request).await;
        tasks::number(request.get_mut(), front.names_mut());
        (front, request)
    }
}

// The calls that are made often, or of which all tasks of a job have one that waits; nothing of them is boxed here.
impl Service {
    pub(crate) async fn beat(
        &self,
        request: Request<pb::HeartbeatRequest>,
    ) -> Outcome<pb::HeartbeatResponse> {
        let (front, request) = self.enter(request).await;
        front.heartbeat(request, decode::heartbeat, encode::beat).await
    }

    pub(crate) async fn insert(
        &self,
        request: Request<pb::InsertKeyValueRequest>,
    ) -> Outcome<pb::InsertKeyValueResponse> {
        let told = self.told_life(request.metadata()).await;
        let calls = CallContext::connection_calls(request.extensions()).cloned();
        let insert = |caller: Caller, asked: &pb::InsertKeyValueRequest| {
            let life = told.or_else(|| calls?.kept::<Speakers>().of(caller.job));
            decode::insert(caller, asked, life)
        };
        self.front.command(request, insert, answer::done).await
    }

    pub(crate) async fn get(
        &self,
        request: Request<pb::GetKeyValueRequest>,
    ) -> Outcome<pb::GetKeyValueResponse> {
        let asker = self.told_life(request.metadata()).await.map(|(task, _)| task);
        self.front.wait(request, asker, decode::get, |asked, answer| encode::got(asked.key, answer)).await
    }

    pub(crate) async fn try_get(
        &self,
        request: Request<pb::TryGetKeyValueRequest>,
    ) -> Outcome<pb::TryGetKeyValueResponse> {
        let look = |state: &State, caller, asked: &pb::TryGetKeyValueRequest| {
            state.get(decode::scope(caller), &asked.key)
        };
        self.front.read(request, look, |asked, entry| encode::found(asked.key, entry.value)).await
    }

    pub(crate) async fn increment(
        &self,
        request: Request<pb::IncrementKeyValueRequest>,
    ) -> Outcome<pb::IncrementKeyValueResponse> {
        let asked = request.get_ref().key.clone();
        self.front.command(request, decode::increment, |answer| encode::incremented(asked, answer)).await
    }

    pub(crate) async fn arrive(&self, request: Request<pb::BarrierRequest>) -> Outcome<pb::BarrierResponse> {
        let (front, request) = self.enter(request).await;
        front.command(request, decode::barrier, encode::passed).await
    }

    pub(crate) async fn register(
        &self,
        request: Request<pb::RegisterTaskRequest>,
    ) -> Outcome<pb::RegisterTaskResponse> {
        let (front, request) = self.enter(request).await;
        front.register(request, decode::register, encode::registered).await
    }

    pub(crate) async fn leave(
        &self,
        request: Request<pb::ShutdownTaskRequest>,
    ) -> Outcome<pb::ShutdownTaskResponse> {
        let (front, request) = self.enter(request).await;
        front.command(request, decode::shutdown, answer::done).await
    }

    pub(crate) async fn poll(
        &self,
        request: Request<pb::PollForErrorRequest>,
    ) -> Outcome<pb::PollForErrorResponse> {
        let (front, request) = self.enter(request).await;
        Err(front.poll(request, decode::poll).await)
    }
}

#[async_trait]
impl CoordinationService for Service {
    async fn register_task(
        &self,
        request: Request<pb::RegisterTaskRequest>,
    ) -> Outcome<pb::RegisterTaskResponse> {
        self.register(request).await
    }

    async fn heartbeat(&self, request: Request<pb::HeartbeatRequest>) -> Outcome<pb::HeartbeatResponse> {
        self.beat(request).await
    }

    async fn shutdown_task(
        &self,
        request: Request<pb::ShutdownTaskRequest>,
    ) -> Outcome<pb::ShutdownTaskResponse> {
        self.leave(request).await
    }

    async fn wait_for_all_tasks(
        &self,
        request: Request<pb::WaitForAllTasksRequest>,
    ) -> Outcome<pb::WaitForAllTasksResponse> {
        let (front, request) = self.enter(request).await;
        let form = Form::of(request.get_ref());
        front.command(request, decode::wait, |answer| encode::waited(answer, form)).await
    }

    async fn reset_task(&self, request: Request<pb::ResetTaskRequest>) -> Outcome<pb::ResetTaskResponse> {
        let (front, request) = self.enter(request).await;
        front.command(request, decode::reset, answer::done).await
    }

    /// Served by the agent in each client, never by a service.
    async fn report_error_to_task(
        &self,
        _: Request<pb::ReportErrorToTaskRequest>,
    ) -> Outcome<pb::ReportErrorToTaskResponse> {
        Err(Status::unimplemented("errors are reported to the agents in clients, not to a service"))
    }

    async fn get_task_state(
        &self,
        request: Request<pb::GetTaskStateRequest>,
    ) -> Outcome<pb::GetTaskStateResponse> {
        let (front, request) = self.enter(request).await;
        let look = |state: &State, caller, asked: &pb::GetTaskStateRequest| {
            state.tasks(decode::scope(caller), &decode::tasks(&asked.source_task))
        };
        front.read(request, look, |_, report| encode::states(&report, front.voice())).await
    }

    async fn watch_job_state(
        &self,
        request: Request<pb::WatchJobStateRequest>,
    ) -> Outcome<pb::WatchJobStateResponse> {
        let (front, request) = self.enter(request).await;
        let watched =
            |asked: pb::WatchJobStateRequest, answer| encode::watched(answer, &asked.job_name, front.voice());
        front.wait(request, None, decode::watch, watched).await
    }

    async fn insert_key_value(
        &self,
        request: Request<pb::InsertKeyValueRequest>,
    ) -> Outcome<pb::InsertKeyValueResponse> {
        self.insert(request).await
    }

    async fn get_key_value(
        &self,
        request: Request<pb::GetKeyValueRequest>,
    ) -> Outcome<pb::GetKeyValueResponse> {
        self.get(request).await
    }

    async fn try_get_key_value(
        &self,
        request: Request<pb::TryGetKeyValueRequest>,
    ) -> Outcome<pb::TryGetKeyValueResponse> {
        self.try_get(request).await
    }

    async fn increment_key_value(
        &self,
        request: Request<pb::IncrementKeyValueRequest>,
    ) -> Outcome<pb::IncrementKeyValueResponse> {
        self.increment(request).await
    }

    async fn get_key_value_dir(
        &self,
        request: Request<pb::GetKeyValueDirRequest>,
    ) -> Outcome<pb::GetKeyValueDirResponse> {
        let look = |state: &State, caller, asked: &pb::GetKeyValueDirRequest| {
            state.directory(decode::scope(caller), &asked.directory_key)
        };
        self.front.read_keys(request, look, encode::directory).await
    }

    async fn delete_key_value(
        &self,
        request: Request<pb::DeleteKeyValueRequest>,
    ) -> Outcome<pb::DeleteKeyValueResponse> {
        self.front.command(request, decode::delete, answer::done).await
    }

    async fn barrier(&self, request: Request<pb::BarrierRequest>) -> Outcome<pb::BarrierResponse> {
        self.arrive(request).await
    }

    async fn cancel_barrier(
        &self,
        request: Request<pb::CancelBarrierRequest>,
    ) -> Outcome<pb::CancelBarrierResponse> {
        let (front, request) = self.enter(request).await;
        front.command(request, decode::cancel, answer::done).await
    }

    async fn get_alive_tasks(
        &self,
        request: Request<pb::GetAliveTasksRequest>,
    ) -> Outcome<pb::GetAliveTasksResponse> {
        let (front, request) = self.enter(request).await;
        front.command(request, decode::alive, |answer| encode::alive(answer, front.voice())).await
    }

    async fn poll_for_error(
        &self,
        request: Request<pb::PollForErrorRequest>,
    ) -> Outcome<pb::PollForErrorResponse> {
        self.poll(request).await
    }

    async fn report_error_to_service(
        &self,
        request: Request<pb::ReportErrorToServiceRequest>,
    ) -> Outcome<pb::ReportErrorToServiceResponse> {
        let (front, request) = self.enter(request).await;
        front.command(request, decode::report, answer::done).await
    }
}
