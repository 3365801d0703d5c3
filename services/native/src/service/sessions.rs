//! `tripod.v1.Sessions`.

use tonic::{Request, Response, Status};
use tripod_gateway::Gateway;
use tripod_proto::tripod::v1::sessions_server::Sessions;
use tripod_proto::tripod::v1::{
    CloseSessionRequest, CloseSessionResponse, OpenSessionRequest, OpenSessionResponse,
};
use tripod_state::ids::SessionId;
use tripod_state::{Answer, Command, session};

use crate::status;

pub(super) struct Service {
    gateway: Gateway,
}

impl Service {
    pub(super) fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }

    async fn submit(&self, command: session::Command) -> Result<Answer, Status> {
        status::answer(self.gateway.submit(Command::Session(command)).await)
    }
}

#[tonic::async_trait]
impl Sessions for Service {
    async fn open(&self, _: Request<OpenSessionRequest>) -> Result<Response<OpenSessionResponse>, Status> {
        match self.submit(session::Command::Open).await? {
            Answer::Session(session) => Ok(Response::new(OpenSessionResponse { session: session.0 })),
            other => Err(status::unexpected(&other)),
        }
    }

    async fn close(
        &self,
        request: Request<CloseSessionRequest>,
    ) -> Result<Response<CloseSessionResponse>, Status> {
        let session = SessionId(request.into_inner().session);
        self.submit(session::Command::Close { session }).await?;
        Ok(Response::new(CloseSessionResponse {}))
    }
}
