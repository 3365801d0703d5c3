//! `grpc.health.v1`, as load balancers ask it.

mod common;

use std::sync::Arc;
use std::time::Duration;

use tonic::transport::{Channel, Server};
use tonic::{Code, Streaming};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tripod_gateway::{FlushTimes, Gateway, Measures, MemoryBackend};
use tripod_lines::Lines;
use tripod_state::ids::{LogIndex, NodeId, Term};
use tripod_state::member::{self, Addresses, Listed};
use tripod_state::{ApplyContext, Command, Envelope, level};

async fn serve() -> (HealthClient<Channel>, Arc<MemoryBackend>) {
    let (gateway, backend) = Gateway::in_memory();
    let lines = Lines::new();
    let incoming = lines.listen("node:7700");
    tokio::spawn(Server::builder().add_routes(common::routes(&gateway)).serve_with_incoming(incoming));
    (HealthClient::new(lines.channel("node:7700").await), backend)
}

fn about(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

async fn next(stream: &mut Streaming<HealthCheckResponse>) -> ServingStatus {
    let message = tripod_wait::within("a message", stream.message()).await;
    message.expect("no error").expect("not the end").status()
}

#[tokio::test(start_paused = true)]
async fn the_node_and_each_service_of_the_port_serve_while_there_is_a_leader() {
    let (mut client, backend) = serve().await;
    let names = ["", "tripod.v1.Kv", "tripod.v1.Cluster", "xla.coordination.CoordinationService"];
    for name in names.into_iter().chain(["tensorflow.CoordinationService", "grpc.health.v1.Health"]) {
        let answer = client.check(about(name)).await.expect("known").into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{name}");
    }
    backend.depose();
    for name in names {
        let answer = client.check(about(name)).await.expect("known").into_inner();
        assert_eq!(answer.status(), ServingStatus::NotServing, "{name}");
    }
    let unknown = client.check(about("tripod.v1.Nothing")).await.expect_err("unknown");
    assert_eq!(unknown.code(), Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_each_change_once() {
    let (mut client, backend) = serve().await;
    let mut stream = client.watch(about("")).await.expect("watched").into_inner();
    assert_eq!(next(&mut stream).await, ServingStatus::Serving);
    backend.depose();
    assert_eq!(next(&mut stream).await, ServingStatus::NotServing);
    backend.elect();
    assert_eq!(next(&mut stream).await, ServingStatus::Serving);
    let flush = FlushTimes { under_way: Some(Duration::from_secs(9)), ..FlushTimes::default() };
    backend.set_measures(Measures { flush, ..Measures::default() });
    assert_eq!(next(&mut stream).await, ServingStatus::NotServing, "the disk does not answer");
}

#[tokio::test(start_paused = true)]
async fn a_drained_node_says_so_as_its_http_port_does() {
    let (mut client, backend) = serve().await;
    let mut stream = client.watch(about("")).await.expect("watched").into_inner();
    assert_eq!(next(&mut stream).await, ServingStatus::Serving);
    let mut state = backend.state();
    let nodes = [NodeId(1), NodeId(2)];
    state.follow_members(&nodes.map(|node| Listed { node, peer: format!("p:{node}"), voter: true }));
    let addresses = || Addresses {
        client: "127.0.0.1:1".into(),
        http: "127.0.0.1:2".into(),
        job_host: "127.0.0.1".into(),
        job_port_first: 8000,
        job_port_count: 1,
    };
    let announced = nodes.map(|node| member::Command::Announce { node, addresses: addresses() });
    let drained = member::Command::Drain { node: NodeId(1), drained: true };
    let raised = level::Command::Raise { to: level::NEWEST, heard: nodes.into() };
    let of_members = announced.into_iter().chain([drained]).map(Command::Member);
    for (command, index) in [Command::Level(raised)].into_iter().chain(of_members).zip(1..) {
        let context = ApplyContext { index: LogIndex(index), term: Term(1), now_ms: state.now_ms() };
        let envelope = Envelope { stamp: None, command };
        state.apply(&context, envelope).reply.expect("accepted");
    }
    backend.replace(state);
    assert_eq!(next(&mut stream).await, ServingStatus::NotServing);
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_an_unknown_service_says_so_and_stays() {
    let (mut client, _backend) = serve().await;
    let mut stream = client.watch(about("tripod.v1.Nothing")).await.expect("watched").into_inner();
    assert_eq!(next(&mut stream).await, ServingStatus::ServiceUnknown);
    let more = tokio::time::timeout(Duration::from_secs(60), stream.message()).await;
    assert!(more.is_err(), "told twice, or ended: {more:?}");
}
