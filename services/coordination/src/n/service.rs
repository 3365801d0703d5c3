//! The calls of dialect N: decode, ask the cluster, encode.

use tonic::{Request, Status, async_trait};
use tripod_gateway::SetBeat;
use tripod_proto::xla::coordination as pb;
use tripod_proto::xla::coordination::coordination_service_server::CoordinationService;
use tripod_state::{Answer, State};

use super::{decode, encode};
use crate::answer;
use crate::front::{Front, Outcome};

/// Answers `xla.coordination.CoordinationService`.
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
        self.front.tell(&request, decode::register, sign).await
    }

    /// See [`Front::set_beat`].
    pub(crate) async fn set_beat(&self, request: &Request<pb::HeartbeatRequest>) -> Result<SetBeat, Status> {
        self.front.set_beat(request, decode::heartbeat).await
    }

    /// What a heartbeat of a living task is answered.
    pub(crate) fn beat_answer(answer: Answer) -> Result<pb::HeartbeatResponse, Status> {
        encode::beat(answer)
    }
}

// The calls that are made often, or of which all tasks of a job have one that waits; nothing of them is boxed here.
impl Service {
    pub(crate) async fn beat(
        &self,
        request: Request<pb::HeartbeatRequest>,
    ) -> Outcome<pb::HeartbeatResponse> {
        self.front.heartbeat(request, decode::heartbeat, encode::beat).await
    }

    pub(crate) async fn insert(
        &self,
        request: Request<pb::InsertKeyValueRequest>,
    ) -> Outcome<pb::InsertKeyValueResponse> {
        self.front.command(request, decode::insert, answer::done).await
    }

    pub(crate) async fn try_get(
        &self,
        request: Request<pb::TryGetKeyValueRequest>,
    ) -> Outcome<pb::TryGetKeyValueResponse> {
        let look = |state: &State, caller, asked: &pb::TryGetKeyValueRequest| {
            state.get(decode::scope(caller, asked.incarnations.as_ref()), &asked.key)
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

    // Calls that wait in crowds are those of the front itself: a future around its future would have the request once more.

    pub(crate) fn get(
        &self,
        request: Request<pb::GetKeyValueRequest>,
    ) -> impl Future<Output = Outcome<pb::GetKeyValueResponse>> {
        let asker = decode::asker(request.get_ref().incarnations.as_ref());
        self.front.wait(request, asker, decode::get, |asked, answer| encode::got(asked.key, answer))
    }

    pub(crate) fn arrive(
        &self,
        request: Request<pb::BarrierRequest>,
    ) -> impl Future<Output = Outcome<pb::BarrierResponse>> {
        self.front.command(request, decode::barrier, encode::passed)
    }

    pub(crate) fn register(
        &self,
        request: Request<pb::RegisterTaskRequest>,
    ) -> impl Future<Output = Outcome<pb::RegisterTaskResponse>> {
        self.front.register(request, decode::register, encode::registered)
    }

    pub(crate) fn leave(
        &self,
        request: Request<pb::ShutdownTaskRequest>,
    ) -> impl Future<Output = Outcome<pb::ShutdownTaskResponse>> {
        self.front.command(request, decode::shutdown, answer::done::<pb::ShutdownTaskResponse>)
    }

    pub(crate) async fn poll(
        &self,
        request: Request<pb::PollForErrorRequest>,
    ) -> Outcome<pb::PollForErrorResponse> {
        Err(self.front.poll(request, decode::poll).await)
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

    async fn watch_tasks(&self, request: Request<pb::WatchTasksRequest>) -> Outcome<pb::WatchTasksResponse> {
        let asker = decode::asker(request.get_ref().incarnations.as_ref());
        self.front.wait(request, asker, decode::watch, |_, answer| encode::tasks(answer)).await
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
            state.directory(decode::scope(caller, asked.incarnations.as_ref()), &asked.directory_key)
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
        self.front.command(request, decode::cancel, answer::done).await
    }

    async fn get_alive_tasks(
        &self,
        request: Request<pb::GetAliveTasksRequest>,
    ) -> Outcome<pb::GetAliveTasksResponse> {
        self.front.command(request, decode::alive, encode::alive).await
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
        self.front.command(request, decode::report, answer::done).await
    }
}
