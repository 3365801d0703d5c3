//! `tripod.v1.Sessions`.

use tonic::{Request, Response, Status};
use tripod_gateway::{Gateway, IdWidth};
use tripod_port::CallContext;
use tripod_proto::tripod::v1::sessions_server::Sessions;
use tripod_proto::tripod::v1::{
    CloseSessionRequest, CloseSessionResponse, OpenSessionRequest, OpenSessionResponse,
};
use tripod_proto::wide;
use tripod_state::{Answer, Command, session};

use crate::{decode, status};

pub(super) struct Service {
    gateway: Gateway,
}

impl Service {
    pub(super) fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }
}

#[tonic::async_trait]
impl Sessions for Service {
    async fn open(
        &self,
        request: Request<OpenSessionRequest>,
    ) -> Result<Response<OpenSessionResponse>, Status> {
        let from = CallContext::address(request.extensions());
        let width = if request.get_ref().wide { IdWidth::Wide } else { IdWidth::Narrow };
        match status::answer(self.gateway.open_session(from, width).await)? {
            Answer::Session(id) => {
                let (session, session_high) = wide::split(id.0);
                Ok(Response::new(OpenSessionResponse { session, session_high }))
            }
            other => Err(status::unexpected(&other)),
        }
    }

    async fn close(
        &self,
        request: Request<CloseSessionRequest>,
    ) -> Result<Response<CloseSessionResponse>, Status> {
        let CloseSessionRequest { session, session_high } = request.into_inner();
        let session = decode::session(session, session_high);
        let command = Command::Session(session::Command::Close { session });
        status::answer(self.gateway.submit(command).await)?;
        Ok(Response::new(CloseSessionResponse {}))
    }
}
