//! `tripod.v1.Levels`.

use tonic::{Request, Response, Status};
use tripod_gateway::{Gateway, LevelRequest};
use tripod_proto::tripod::v1::levels_server::Levels;
use tripod_proto::tripod::v1::{LevelsReport, PinLevelRequest, ShowLevelsRequest, UnpinLevelRequest};
use tripod_state::ids::FeatureLevel;

use crate::{encode, status};

pub(super) struct Service {
    gateway: Gateway,
}

impl Service {
    pub(super) fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }

    async fn ask(&self, request: LevelRequest) -> Result<Response<LevelsReport>, Status> {
        let levels = self.gateway.admin().levels(request).await;
        levels
            .map(|levels| Response::new(encode::level::report(&levels)))
            .map_err(|error| status::level::of(&error))
    }
}

#[tonic::async_trait]
impl Levels for Service {
    async fn show(&self, _: Request<ShowLevelsRequest>) -> Result<Response<LevelsReport>, Status> {
        self.ask(LevelRequest::Show).await
    }

    async fn pin(&self, request: Request<PinLevelRequest>) -> Result<Response<LevelsReport>, Status> {
        let PinLevelRequest { level, by } = request.into_inner();
        self.ask(LevelRequest::Pin { level: FeatureLevel(level), by }).await
    }

    async fn unpin(&self, request: Request<UnpinLevelRequest>) -> Result<Response<LevelsReport>, Status> {
        self.ask(LevelRequest::Unpin { by: request.into_inner().by }).await
    }
}
