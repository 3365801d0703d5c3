//! `grpc.health.v1` over a real connection, as load balancers ask it.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::service::Routes;
use tonic::transport::Channel;
use tonic::{Code, Streaming};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tripod_gateway::{FlushTimes, Gateway, Measures, MemoryBackend};
use tripod_native::JobPorts;

/// How long a message may take on a machine that runs other things too.
const PATIENCE: Duration = Duration::from_secs(30);

async fn serve() -> (HealthClient<Channel>, Arc<MemoryBackend>) {
    let (gateway, backend) = Gateway::in_memory();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let routes = tripod_native::add_to(
        Routes::default(),
        &gateway,
        &watch::channel(JobPorts::default()).1,
        &watch::channel(None).1,
    );
    let incoming = TcpListenerStream::new(listener);
    tokio::spawn(tonic::transport::Server::builder().add_routes(routes).serve_with_incoming(incoming));
    let channel = Channel::from_shared(format!("http://{address}")).expect("an address").connect_lazy();
    (HealthClient::new(channel), backend)
}

fn about(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

async fn next(stream: &mut Streaming<HealthCheckResponse>) -> ServingStatus {
    let message = tokio::time::timeout(PATIENCE, stream.message()).await.expect("in time");
    message.expect("no error").expect("not the end").status()
}

#[tokio::test]
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

#[tokio::test]
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

#[tokio::test]
async fn a_watch_of_an_unknown_service_says_so_and_stays() {
    let (mut client, _backend) = serve().await;
    let mut stream = client.watch(about("tripod.v1.Nothing")).await.expect("watched").into_inner();
    assert_eq!(next(&mut stream).await, ServingStatus::ServiceUnknown);
    let more = tokio::time::timeout(Duration::from_millis(1200), stream.message()).await;
    assert!(more.is_err(), "told twice, or ended: {more:?}");
}
