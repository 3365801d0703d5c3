//! `grpc.health.v1.Health` on the client port: what load balancers and gRPC clients ask before they send.
//!
//! A node serves all of its services or none, so each of their names has the same answer as the whole node,
//! whose name is empty. Nothing is kept: whoever asks has the node look, and a watch looks as long as its
//! caller listens.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tripod_gateway::Gateway;
use tripod_proto::{tensorflow, tripod::v1, xla};

/// Between two looks of a watch.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The node as a whole, the services of the client port by their full names, and this one.
const SERVICES: [&str; 17] = [
    "",
    "grpc.health.v1.Health",
    v1::agents_server::SERVICE_NAME,
    v1::cluster_server::SERVICE_NAME,
    v1::diagnose_server::SERVICE_NAME,
    v1::events_server::SERVICE_NAME,
    v1::jobs_server::SERVICE_NAME,
    v1::kv_server::SERVICE_NAME,
    v1::sessions_server::SERVICE_NAME,
    v1::snapshots_server::SERVICE_NAME,
    v1::tokens_server::SERVICE_NAME,
    xla::coordination::coordination_service_server::SERVICE_NAME,
    xla::distributed_runtime_service_server::SERVICE_NAME,
    tensorflow::coordination_service_server::SERVICE_NAME,
    tensorflow::worker_service_server::SERVICE_NAME,
    tensorflow::eager::eager_service_server::SERVICE_NAME,
    "envoy.service.discovery.v3.AggregatedDiscoveryService",
];

pub(crate) struct Service {
    gateway: Gateway,
}

impl Service {
    pub(crate) fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }
}

async fn look(gateway: &Gateway, service: &str) -> ServingStatus {
    if !SERVICES.contains(&service) {
        return ServingStatus::ServiceUnknown;
    }
    if gateway.readiness().await.is_ready() { ServingStatus::Serving } else { ServingStatus::NotServing }
}

fn answer(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl Health for Service {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = request.into_inner().service;
        match look(&self.gateway, &service).await {
            ServingStatus::ServiceUnknown => Err(Status::not_found(format!(
                "there is no service `{service}` on this port; leave the name empty to ask for the whole node"
            ))),
            status => Ok(Response::new(answer(status))),
        }
    }

    type WatchStream = ReceiverStream<Result<HealthCheckResponse, Status>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let (sender, told) = mpsc::channel(1);
        let (gateway, service) = (self.gateway.clone(), request.into_inner().service);
        tokio::spawn(async move {
            let watching = async {
                let mut last = None;
                loop {
                    let status = look(&gateway, &service).await;
                    if last.replace(status) != Some(status) && sender.send(Ok(answer(status))).await.is_err()
                    {
                        return;
                    }
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            };
            tokio::select! {
                () = watching => {}
                () = sender.closed() => {}
            }
        });
        Ok(Response::new(ReceiverStream::new(told)))
    }
}
