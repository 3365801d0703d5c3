//! What each resource says.

use envoy_types::pb::envoy::config::cluster::v3::cluster::{ClusterDiscoveryType, DiscoveryType};
use envoy_types::pb::envoy::config::cluster::v3::{Cluster, LoadBalancingPolicy};
use envoy_types::pb::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use envoy_types::pb::envoy::config::listener::v3::Listener;
use envoy_types::pb::envoy::config::route::v3::route::Action;
use envoy_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use envoy_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use envoy_types::pb::envoy::config::route::v3::{RouteAction, RouteConfiguration};
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use envoy_types::pb::envoy::extensions::load_balancing_policies::pick_first::v3::PickFirst;
use envoy_types::pb::google::protobuf::{Duration, UInt32Value};
use prost::Message;

use crate::support::{CLUSTER, ENDPOINTS, LISTENER, Served, addresses, unpack};

/// The routes of the one listener.
fn routes(listener: Listener) -> RouteConfiguration {
    let manager = listener.api_listener.and_then(|api| api.api_listener).expect("an API listener");
    let manager = HttpConnectionManager::decode(manager.value.as_slice()).expect("a connection manager");
    assert_eq!(manager.http_filters.len(), 1, "the router, which gRPC insists on");
    match manager.route_specifier {
        Some(RouteSpecifier::RouteConfig(routes)) => routes,
        other => panic!("no routes inside: {other:?}"),
    }
}

#[tokio::test]
async fn a_listener_sends_every_call_to_the_job_and_repeats_the_unavailable() {
    let mut stream = Served::start().await.stream().await;
    let answer = stream.get(LISTENER, &["train:1"]).await;
    let [listener] = unpack::<Listener>(&answer).try_into().expect("one listener");
    assert_eq!(listener.name, "train:1", "gRPC looks for the name that it asked for");
    let [host] = routes(listener).virtual_hosts.try_into().expect("one host");
    assert_eq!(host.domains, ["*"]);
    let [route] = host.routes.try_into().expect("one route");
    let path = route.r#match.and_then(|matching| matching.path_specifier);
    assert_eq!(path, Some(PathSpecifier::Prefix(String::new())));
    let Some(Action::Route(RouteAction { cluster_specifier, timeout, retry_policy, .. })) = route.action
    else {
        panic!("no route");
    };
    assert_eq!(cluster_specifier, Some(ClusterSpecifier::Cluster("train".to_owned())));
    assert_eq!(timeout, Some(Duration::default()), "calls may be held for ever");
    let retries = retry_policy.expect("a retry policy");
    assert_eq!(retries.retry_on, "unavailable");
    assert_eq!(retries.num_retries, Some(UInt32Value { value: 4 }));
    let pauses = retries.retry_back_off.expect("pauses");
    assert_eq!(pauses.base_interval, Some(Duration { seconds: 0, nanos: 500_000_000 }));
    assert_eq!(pauses.max_interval, Some(Duration { seconds: 4, nanos: 0 }));
}

#[tokio::test]
async fn a_cluster_keeps_a_client_at_one_node_and_bounds_no_calls() {
    let mut stream = Served::start().await.stream().await;
    let answer = stream.get(CLUSTER, &["train"]).await;
    let [cluster] = unpack::<Cluster>(&answer).try_into().expect("one cluster");
    assert_eq!(cluster.name, "train");
    assert_eq!(cluster.cluster_discovery_type, Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())));
    let eds = cluster.eds_cluster_config.expect("endpoints by xDS");
    assert_eq!(eds.service_name, "train");
    let source = eds.eds_config.and_then(|source| source.config_source_specifier);
    assert!(matches!(source, Some(ConfigSourceSpecifier::Ads(_))), "on the same stream");
    let breakers = cluster.circuit_breakers.expect("bounds");
    assert_eq!(breakers.thresholds[0].max_requests, Some(UInt32Value { value: u32::MAX }));
    let Some(LoadBalancingPolicy { policies }) = cluster.load_balancing_policy else { panic!("no policy") };
    let policy = policies[0].typed_extension_config.as_ref().and_then(|policy| policy.typed_config.as_ref());
    let policy = PickFirst::decode(policy.expect("a policy").value.as_slice()).expect("pick_first");
    assert!(policy.shuffle_address_list, "or all clients go to the first node");
}

#[tokio::test]
async fn endpoints_are_the_jobs_own_ports_on_every_node() {
    let served = Served::start().await;
    served.create("second").await;
    let mut stream = served.stream().await;
    for (job, expected) in [
        ("default", ["10.0.0.1:7700", "10.0.0.2:7700"]),
        ("train", ["10.0.0.1:8000", "10.0.0.2:8000"]),
        ("second", ["10.0.0.1:8001", "10.0.0.2:8001"]),
    ] {
        assert_eq!(addresses(&stream.get(ENDPOINTS, &[job]).await), expected, "{job}");
    }
}

#[tokio::test]
async fn names_of_nodes_are_told_as_their_addresses() {
    let served = Served::start().await;
    served.announce(1, "localhost", 8000).await;
    let mut stream = served.stream().await;
    stream.ask(ENDPOINTS, &["train"]).await;
    let loopback = ["127.0.0.1:8000", "::1:8000"];
    loop {
        // Until the name is looked up, the other nodes are told.
        let told = addresses(&stream.answer(ENDPOINTS).await);
        assert!(told.contains(&"10.0.0.2:8000".to_owned()), "{told:?}");
        if told.iter().any(|at| loopback.contains(&at.as_str())) {
            return;
        }
    }
}
