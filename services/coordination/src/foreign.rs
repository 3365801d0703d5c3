//! Calls that are meant for other services of TensorFlow. `ParameterServerStrategy` takes every process of
//! its cluster for a worker, and so also the coordinator, which it need only answer.
//!
//! Seen of TensorFlow 2.21: `GetStatus` and `CreateContext` once, `Enqueue` once for each function.

use std::sync::Once;

use tonic::{Request, async_trait};
use tripod_proto::tensorflow::Unread;
use tripod_proto::tensorflow::eager::eager_service_server::EagerService;
use tripod_proto::tensorflow::worker_service_server::WorkerService;

use crate::front::Outcome;

/// Answers with empty messages.
#[derive(Debug)]
pub(crate) struct Service {
    noted: Once,
}

impl Service {
    pub(crate) const fn new() -> Self {
        Self { noted: Once::new() }
    }

    fn answer(&self, call: &'static str) -> Outcome<Unread> {
        self.noted.call_once(|| tracing::info!(call, "call for a tensorflow worker, answered with nothing"));
        Ok(tonic::Response::new(Unread {}))
    }
}

#[async_trait]
impl WorkerService for Service {
    async fn get_status(&self, _: Request<Unread>) -> Outcome<Unread> {
        self.answer("GetStatus")
    }
}

#[async_trait]
impl EagerService for Service {
    async fn create_context(&self, _: Request<Unread>) -> Outcome<Unread> {
        self.answer("CreateContext")
    }

    async fn update_context(&self, _: Request<Unread>) -> Outcome<Unread> {
        self.answer("UpdateContext")
    }

    async fn enqueue(&self, _: Request<Unread>) -> Outcome<Unread> {
        self.answer("Enqueue")
    }

    async fn keep_alive(&self, _: Request<Unread>) -> Outcome<Unread> {
        self.answer("KeepAlive")
    }

    async fn close_context(&self, _: Request<Unread>) -> Outcome<Unread> {
        self.answer("CloseContext")
    }
}
