//! The RPCs, and how they are mounted.

use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_server::{
    AggregatedDiscoveryService, AggregatedDiscoveryServiceServer,
};
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};
use tripod_gate::Admitted;
use tripod_gateway::Gateway;

use crate::directory::{self, Known};
use crate::session::Session;

/// Answers under way to one client. More would be older states, which it no longer needs.
const UNREAD_MAX: usize = 1;

struct Service {
    known: Known,
}

/// Adds xDS to the routes of a port. Must be called within a tokio runtime: a task keeps up with members
/// and jobs until the routes are dropped.
#[must_use]
pub(crate) fn add_to(routes: Routes, gateway: &Gateway) -> Routes {
    let service = Service { known: directory::keep(gateway.clone()) };
    routes.add_service(AggregatedDiscoveryServiceServer::new(service))
}

#[tonic::async_trait]
impl AggregatedDiscoveryService for Service {
    type StreamAggregatedResourcesStream = ReceiverStream<Result<DiscoveryResponse, Status>>;
    type DeltaAggregatedResourcesStream = ReceiverStream<Result<DeltaDiscoveryResponse, Status>>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        let (replies, answers) = mpsc::channel(UNREAD_MAX);
        let admitted = Admitted::of(request.extensions()).cloned();
        let session = Session::new(self.known.clone(), replies).admitted(admitted);
        tokio::spawn(session.run(request.into_inner()));
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn delta_aggregated_resources(
        &self,
        _request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        Err(Status::unimplemented("changes are not served by themselves; call StreamAggregatedResources"))
    }
}
