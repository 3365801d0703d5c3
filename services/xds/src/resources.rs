//! The messages that gRPC is given for a job.

use std::net::SocketAddr;

use envoy_types::pb::envoy::config::cluster::v3::circuit_breakers::Thresholds;
use envoy_types::pb::envoy::config::cluster::v3::cluster::{
    ClusterDiscoveryType, DiscoveryType, EdsClusterConfig,
};
use envoy_types::pb::envoy::config::cluster::v3::load_balancing_policy::Policy;
use envoy_types::pb::envoy::config::cluster::v3::{CircuitBreakers, Cluster, LoadBalancingPolicy};
use envoy_types::pb::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::core::v3::{
    Address, AggregatedConfigSource, ApiVersion, ConfigSource, Locality, SocketAddress, TypedExtensionConfig,
    address,
};
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};
use envoy_types::pb::envoy::config::listener::v3::{ApiListener, Listener};
use envoy_types::pb::envoy::config::route::v3::retry_policy::RetryBackOff;
use envoy_types::pb::envoy::config::route::v3::route::Action;
use envoy_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use envoy_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use envoy_types::pb::envoy::config::route::v3::{
    RetryPolicy, Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost,
};
use envoy_types::pb::envoy::extensions::filters::http::router::v3::Router;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_filter::ConfigType;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, HttpFilter,
};
use envoy_types::pb::envoy::extensions::load_balancing_policies::pick_first::v3::PickFirst;
use envoy_types::pb::google::protobuf::{Any, Duration, UInt32Value};
use envoy_types::util::pack_any;

/// How often a call is made again. gRPC makes five attempts of a call at most, whatever is said here.
const RETRIES: u32 = 4;
/// The longest pause before the first attempt after a failed one; doubled with each.
const RETRY_PAUSE: Duration = Duration { seconds: 0, nanos: 500_000_000 };
/// The longest of these pauses.
const RETRY_PAUSE_MAX: Duration = Duration { seconds: 4, nanos: 0 };
/// A poll or a get may be held for the life of a job.
const NO_LIMIT: Duration = Duration { seconds: 0, nanos: 0 };

/// What a client of `job` asks for first, by the name that it uses itself: every call goes to the job's
/// nodes, and is made again when it ends UNAVAILABLE. No other code is repeated: the repetition of a
/// shutdown that failed INTERNAL ends badly.
pub(crate) fn listener(name: &str, job: &str) -> Any {
    let routes = RouteConfiguration {
        name: job.to_owned(),
        virtual_hosts: vec![VirtualHost {
            name: job.to_owned(),
            domains: vec!["*".to_owned()],
            routes: vec![route(job)],
            ..Default::default()
        }],
        ..Default::default()
    };
    let router = HttpFilter {
        name: "router".to_owned(),
        config_type: Some(ConfigType::TypedConfig(pack_any(Router::default()))),
        ..Default::default()
    };
    let manager = HttpConnectionManager {
        route_specifier: Some(RouteSpecifier::RouteConfig(routes)),
        http_filters: vec![router],
        ..Default::default()
    };
    pack_any(Listener {
        name: name.to_owned(),
        api_listener: Some(ApiListener { api_listener: Some(pack_any(manager)) }),
        ..Default::default()
    })
}

fn route(job: &str) -> Route {
    let back_off = RetryBackOff { base_interval: Some(RETRY_PAUSE), max_interval: Some(RETRY_PAUSE_MAX) };
    let action = RouteAction {
        cluster_specifier: Some(ClusterSpecifier::Cluster(job.to_owned())),
        timeout: Some(NO_LIMIT),
        retry_policy: Some(RetryPolicy {
            retry_on: "unavailable".to_owned(),
            num_retries: Some(UInt32Value { value: RETRIES }),
            retry_back_off: Some(back_off),
            ..Default::default()
        }),
        ..Default::default()
    };
    let every_path = PathSpecifier::Prefix(String::new());
    Route {
        r#match: Some(RouteMatch { path_specifier: Some(every_path), ..Default::default() }),
        action: Some(Action::Route(action)),
        ..Default::default()
    }
}

/// How the calls of a client are spread over the nodes of `job`: not at all. It stays with the first one
/// that it reaches, in an order of its own, and goes to the next when that one is lost.
pub(crate) fn cluster(job: &str) -> Any {
    let stay = Policy {
        typed_extension_config: Some(TypedExtensionConfig {
            name: "pick_first".to_owned(),
            // All clients are given the same addresses, and must not all go to the first.
            typed_config: Some(pack_any(PickFirst { shuffle_address_list: true })),
        }),
    };
    let ads = ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(AggregatedConfigSource {})),
        ..Default::default()
    };
    // A client that gives up waiting for a key leaves its call open. gRPC's own bound of 1,024 open calls
    // would be reached in the end, and heartbeats refused.
    let unbounded = Thresholds { max_requests: Some(UInt32Value { value: u32::MAX }), ..Default::default() };
    pack_any(Cluster {
        name: job.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        eds_cluster_config: Some(EdsClusterConfig { eds_config: Some(ads), service_name: job.to_owned() }),
        load_balancing_policy: Some(LoadBalancingPolicy { policies: vec![stay] }),
        circuit_breakers: Some(CircuitBreakers { thresholds: vec![unbounded], ..Default::default() }),
        ..Default::default()
    })
}

/// Where the nodes listen for `job`.
pub(crate) fn endpoints(job: &str, addresses: &[SocketAddr]) -> Any {
    let locality = LocalityLbEndpoints {
        locality: Some(Locality::default()),
        lb_endpoints: addresses.iter().map(endpoint).collect(),
        // gRPC leaves out localities without a weight.
        load_balancing_weight: Some(UInt32Value { value: 1 }),
        ..Default::default()
    };
    pack_any(ClusterLoadAssignment {
        cluster_name: job.to_owned(),
        endpoints: vec![locality],
        ..Default::default()
    })
}

fn endpoint(at: &SocketAddr) -> LbEndpoint {
    let socket = SocketAddress {
        address: at.ip().to_string(),
        port_specifier: Some(PortSpecifier::PortValue(at.port().into())),
        ..Default::default()
    };
    let address = Address { address: Some(address::Address::SocketAddress(socket)) };
    let endpoint = Endpoint { address: Some(address), ..Default::default() };
    LbEndpoint { host_identifier: Some(HostIdentifier::Endpoint(endpoint)), ..Default::default() }
}
