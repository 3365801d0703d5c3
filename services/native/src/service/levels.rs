//! `tripod.v1.Levels`.

use tonic::{Request, Response, Status};
use tripod_audit::{Auditor, Record};
use tripod_gateway::{Gateway, LevelRequest};
use tripod_proto::tripod::v1::levels_server::Levels;
use tripod_proto::tripod::v1::{LevelsReport, PinLevelRequest, ShowLevelsRequest, UnpinLevelRequest};
use tripod_state::ids::FeatureLevel;

use crate::audited::{audited, call};
use crate::{encode, status};

pub(super) struct Service {
    gateway: Gateway,
    auditor: Auditor,
}

impl Service {
    pub(super) fn new(gateway: Gateway, auditor: Auditor) -> Self {
        Self { gateway, auditor }
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
        let record = call(request.extensions(), "Levels/Pin");
        let PinLevelRequest { level, by } = request.into_inner();
        let record = Record { resource: format!("level {level}, says {by}").as_str().into(), ..record };
        audited(&self.auditor, record, self.ask(LevelRequest::Pin { level: FeatureLevel(level), by })).await
    }

    async fn unpin(&self, request: Request<UnpinLevelRequest>) -> Result<Response<LevelsReport>, Status> {
        let record = call(request.extensions(), "Levels/Unpin");
        let by = request.into_inner().by;
        let record = Record { resource: format!("says {by}").as_str().into(), ..record };
        audited(&self.auditor, record, self.ask(LevelRequest::Unpin { by })).await
    }
}
