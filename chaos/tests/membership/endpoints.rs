//! What gRPC clients are told of a job's nodes (`xds:///default`), as it changes.

use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use futures::stream;
use tonic::Streaming;
use tripod_load::connect;
use tripod_wait::within;

const TYPE: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
const JOB: &str = "default";
/// How a port begins in an endpoint: field 3 of a socket address, as a number.
const PORT_FIELD: u8 = 3 << 3;

/// A client that is told of every change.
pub(crate) struct Endpoints {
    told: Streaming<DiscoveryResponse>,
}

impl Endpoints {
    /// Asks the node at `endpoint`.
    pub(crate) async fn watch(endpoint: &str) -> Self {
        let mut client = AggregatedDiscoveryServiceClient::new(connect::lazy(endpoint).unwrap());
        let request = DiscoveryRequest {
            type_url: TYPE.to_owned(),
            resource_names: vec![JOB.to_owned()],
            ..DiscoveryRequest::default()
        };
        // The side that asks stays open, and asks nothing more.
        let requests = stream::StreamExt::chain(stream::iter([request]), stream::pending());
        let told = client.stream_aggregated_resources(requests).await.unwrap().into_inner();
        Self { told }
    }

    /// Waits until the client is told endpoints of which none has this port.
    pub(crate) async fn without(&mut self, port: u16) {
        self.until(port, false).await;
    }

    /// Waits until the client is told endpoints of which one has this port.
    pub(crate) async fn with(&mut self, port: u16) {
        self.until(port, true).await;
    }

    async fn until(&mut self, port: u16, named: bool) {
        loop {
            let answer = within("what a client is told", self.told.message()).await;
            let resources = answer.unwrap().expect("the stream is open").resources;
            assert!(!resources.is_empty(), "the job has no endpoints");
            if resources.iter().any(|resource| names(&resource.value, port)) == named {
                return;
            }
        }
    }
}

/// Whether an encoded message names this port.
fn names(message: &[u8], port: u16) -> bool {
    let mut encoded = vec![PORT_FIELD];
    let mut rest = port;
    while rest >= 0x80 {
        encoded.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    encoded.push(rest as u8);
    message.windows(encoded.len()).any(|window| window == encoded)
}
