//! Requests of gRPC's own clients, who ask where a job's nodes are.

use std::sync::LazyLock;

use envoy_types::pb::envoy::config::core::v3::Node as Client;
use envoy_types::pb::envoy::service::discovery::v3::DiscoveryRequest;
use envoy_types::pb::google::rpc::Status;
use prost::Message as _;

use crate::calls;
use crate::message::Method;
use crate::source::Source;
use crate::target::Target;
use crate::words;

/// Streams of requests.
pub(crate) const REQUESTS: Target = Target {
    name: "xds",
    what: "requests of clients that ask where nodes are",
    generate: |source| calls::generate_with(source, &METHODS, |source, _| request(source)),
    run: |input| {
        calls::run(&METHODS, input);
    },
};

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    let method = |name: &str| Method {
        path: format!("envoy.service.discovery.v3.AggregatedDiscoveryService/{name}"),
        input: "DiscoveryRequest".into(),
        streams: true,
    };
    vec![method("StreamAggregatedResources"), method("DeltaAggregatedResources")]
});

fn request(source: &mut Source) -> Vec<u8> {
    let text = |source: &mut Source, name: &str| {
        words::text(source, name).map_or_else(|| source.text(), str::to_owned)
    };
    let names = source.length();
    let node = (!source.one_in(3)).then(|| Client { id: source.text(), ..Client::default() });
    let error = source.one_in(4).then(|| Status { message: source.text(), ..Status::default() });
    DiscoveryRequest {
        version_info: text(source, "version"),
        node,
        resource_names: (0..names).map(|_| text(source, "resource")).collect(),
        type_url: text(source, "type_url"),
        response_nonce: text(source, "nonce"),
        error_detail: error,
        ..DiscoveryRequest::default()
    }
    .encode_to_vec()
}
