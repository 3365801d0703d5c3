//! What the scheduler calls at a worker.

use tonic::{Request, Response, Status};
use tripod_proto::ray::worker_service_server::WorkerService;
use tripod_proto::ray::{
    AckReply, DieReply, DieRequest, ExecuteTaskReply, ExecuteTaskRequest, ImportFunctionReply,
    ImportFunctionRequest, ImportReusableVariableRequest,
};

use crate::worker::inbox::Inbox;

/// The service of one life of a worker.
pub(super) struct Service {
    worker: u64,
    inbox: Inbox,
}

impl Service {
    pub(super) fn new(worker: u64, inbox: Inbox) -> Self {
        Self { worker, inbox }
    }
}

#[tonic::async_trait]
impl WorkerService for Service {
    async fn execute_task(
        &self,
        request: Request<ExecuteTaskRequest>,
    ) -> Result<Response<ExecuteTaskReply>, Status> {
        let request = request.into_inner();
        // The port may have been another worker's, which is gone.
        if request.workerid.is_some_and(|worker| worker != self.worker) {
            return Err(Status::failed_precondition(format!("this is worker {}", self.worker)));
        }
        self.inbox.task(request);
        Ok(Response::new(ExecuteTaskReply {}))
    }

    /// A function of another language is none that this worker could execute.
    async fn import_function(
        &self,
        _: Request<ImportFunctionRequest>,
    ) -> Result<Response<ImportFunctionReply>, Status> {
        Ok(Response::new(ImportFunctionReply {}))
    }

    async fn import_reusable_variable(
        &self,
        _: Request<ImportReusableVariableRequest>,
    ) -> Result<Response<AckReply>, Status> {
        Ok(Response::new(AckReply {}))
    }

    async fn die(&self, _: Request<DieRequest>) -> Result<Response<DieReply>, Status> {
        self.inbox.end();
        Ok(Response::new(DieReply {}))
    }
}
