//! The calls of dialect T: decode, ask the cluster, encode.

use tonic::{Request, Status, async_trait};
use tripod_proto::tensorflow as pb;
use tripod_proto::tensorflow::coordination_service_server::CoordinationService;

use super::decode;
use super::encode::{self, Outcome};
use crate::front::Front;

/// Answers `tensorflow.CoordinationService`.
pub(crate) struct Service {
    front: Front,
}

impl Service {
    pub(crate) fn new(front: Front) -> Self {
        Self { front }
    }
}

#[async_trait]
impl CoordinationService for Service {
    async fn register_task(
        &self,
        request: Request<pb::RegisterTaskRequest>,
    ) -> Outcome<pb::RegisterTaskResponse> {
        let command = decode::register(self.front.job().await?, request.get_ref());
        encode::registered(&self.front.call(command).await?)
    }

    async fn heartbeat(&self, request: Request<pb::HeartbeatRequest>) -> Outcome<pb::HeartbeatResponse> {
        let (scope, task, incarnation) = decode::heartbeat(self.front.job().await?, request.get_ref());
        encode::beat(&self.front.heartbeat(scope, task, incarnation).await?)
    }

    async fn shutdown_task(
        &self,
        request: Request<pb::ShutdownTaskRequest>,
    ) -> Outcome<pb::ShutdownTaskResponse> {
        let command = decode::shutdown(self.front.job().await?, request.get_ref());
        encode::done(&self.front.call(command).await?)
    }

    async fn wait_for_all_tasks(
        &self,
        request: Request<pb::WaitForAllTasksRequest>,
    ) -> Outcome<pb::WaitForAllTasksResponse> {
        let command = decode::devices(self.front.job().await?, request.into_inner());
        encode::devices(self.front.call(command).await?)
    }

    async fn reset_task(&self, request: Request<pb::ResetTaskRequest>) -> Outcome<pb::ResetTaskResponse> {
        let command = decode::reset(self.front.job().await?, request.get_ref());
        encode::done(&self.front.call(command).await?)
    }

    /// Served by the agent in each client, never by a service.
    async fn report_error_to_task(
        &self,
        _request: Request<pb::ReportErrorToTaskRequest>,
    ) -> Outcome<pb::ReportErrorToTaskResponse> {
        Err(Status::unimplemented("errors are reported to the agents in clients, not to a service"))
    }

    async fn get_task_state(
        &self,
        request: Request<pb::GetTaskStateRequest>,
    ) -> Outcome<pb::GetTaskStateResponse> {
        let scope = decode::scope(self.front.job().await?);
        let tasks = decode::tasks(&request.get_ref().source_task);
        encode::states(&self.front.read(|state| state.tasks(scope, &tasks)).await?)
    }

    async fn watch_job_state(
        &self,
        request: Request<pb::WatchJobStateRequest>,
    ) -> Outcome<pb::WatchJobStateResponse> {
        let ticket = decode::watch(self.front.job().await?, request.get_ref());
        encode::watched(self.front.wait(ticket).await?)
    }

    async fn insert_key_value(
        &self,
        request: Request<pb::InsertKeyValueRequest>,
    ) -> Outcome<pb::InsertKeyValueResponse> {
        let command = decode::insert(self.front.job().await?, request.into_inner());
        encode::done(&self.front.call(command).await?)
    }

    async fn get_key_value(
        &self,
        request: Request<pb::GetKeyValueRequest>,
    ) -> Outcome<pb::GetKeyValueResponse> {
        let ticket = decode::get(self.front.job().await?, request.get_ref());
        let answer = self.front.wait(ticket).await?;
        encode::got(request.into_inner().key, answer)
    }

    async fn try_get_key_value(
        &self,
        request: Request<pb::TryGetKeyValueRequest>,
    ) -> Outcome<pb::TryGetKeyValueResponse> {
        let request = request.into_inner();
        let scope = decode::scope(self.front.job().await?);
        let entry = self.front.read(|state| state.get(scope, &request.key)).await?;
        encode::found(request.key, entry.value)
    }

    async fn increment_key_value(
        &self,
        request: Request<pb::IncrementKeyValueRequest>,
    ) -> Outcome<pb::IncrementKeyValueResponse> {
        let command = decode::increment(self.front.job().await?, request.get_ref());
        let answer = self.front.call(command).await?;
        encode::incremented(request.into_inner().key, answer)
    }

    async fn get_key_value_dir(
        &self,
        request: Request<pb::GetKeyValueDirRequest>,
    ) -> Outcome<pb::GetKeyValueDirResponse> {
        let request = request.into_inner();
        let scope = decode::scope(self.front.job().await?);
        encode::directory(self.front.read(|state| state.directory(scope, &request.directory_key)).await?)
    }

    async fn delete_key_value(
        &self,
        request: Request<pb::DeleteKeyValueRequest>,
    ) -> Outcome<pb::DeleteKeyValueResponse> {
        let command = decode::delete(self.front.job().await?, request.into_inner());
        encode::done(&self.front.call(command).await?)
    }

    async fn barrier(&self, request: Request<pb::BarrierRequest>) -> Outcome<pb::BarrierResponse> {
        let command = decode::barrier(self.front.job().await?, request.into_inner());
        encode::passed(&self.front.call(command).await?)
    }

    async fn cancel_barrier(
        &self,
        request: Request<pb::CancelBarrierRequest>,
    ) -> Outcome<pb::CancelBarrierResponse> {
        let command = decode::cancel(self.front.job().await?, request.into_inner());
        encode::done(&self.front.call(command).await?)
    }

    async fn get_alive_tasks(
        &self,
        request: Request<pb::GetAliveTasksRequest>,
    ) -> Outcome<pb::GetAliveTasksResponse> {
        let command = decode::alive(self.front.job().await?, request.get_ref());
        encode::alive(self.front.call(command).await?)
    }

    async fn poll_for_error(
        &self,
        request: Request<pb::PollForErrorRequest>,
    ) -> Outcome<pb::PollForErrorResponse> {
        Err(self.front.poll(|job| decode::poll(job, request.get_ref())).await)
    }

    async fn report_error_to_service(
        &self,
        request: Request<pb::ReportErrorToServiceRequest>,
    ) -> Outcome<pb::ReportErrorToServiceResponse> {
        let command = decode::report(self.front.job().await?, request.into_inner());
        encode::done(&self.front.call(command).await?)
    }
}
