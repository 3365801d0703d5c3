//! A served gateway, and a client that speaks the protocol by hand.

use std::sync::Arc;

use envoy_types::pb::envoy::config::core::v3::address::Address;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::core::v3::{Node, SocketAddress};
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::config::endpoint::v3::{ClusterLoadAssignment, LbEndpoint};
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use envoy_types::pb::google::rpc;
use prost::{Message, Name};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Status, Streaming};
use tripod_gateway::{FrontEnds, Gateway, JobBinding, MemoryBackend, PortKind};
use tripod_state::ids::{NodeId, ServiceIncarnation};
use tripod_state::{Command, job, member};
use tripod_xds::Xds;

pub(crate) const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
pub(crate) const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub(crate) const ENDPOINTS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// A node that serves nothing but xDS.
pub(crate) struct Served {
    pub(crate) gateway: Gateway,
    pub(crate) backend: Arc<MemoryBackend>,
    url: String,
}

impl Served {
    /// A node of a cluster that has jobs `default` (on the client ports) and `train` (in slot 0), and
    /// members 1 and 2.
    pub(crate) async fn start() -> Self {
        let (gateway, backend) = Gateway::in_memory();
        let served = Self { url: serve(&gateway).await, gateway, backend };
        served.create("default").await;
        served.create("train").await;
        served.announce(1, "10.0.0.1", 8000).await;
        served.announce(2, "10.0.0.2", 8000).await;
        served
    }

    /// Another node over the same state.
    pub(crate) async fn start_another(&self) -> Self {
        let (gateway, backend) = (self.gateway.clone(), Arc::clone(&self.backend));
        Self { url: serve(&gateway).await, gateway, backend }
    }

    pub(crate) async fn create(&self, name: &str) {
        let (spec, service) = (job::Spec::of_tasks(1), ServiceIncarnation(1));
        self.submit(Command::Job(job::Command::Create { name: name.to_owned(), spec, service })).await;
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.submit(Command::Job(job::Command::Delete { name: name.to_owned() })).await;
    }

    /// Announces a node with its clients at port 7700 and ten job ports from `first` on.
    pub(crate) async fn announce(&self, node: u64, host: &str, first: u16) {
        let addresses = member::Addresses {
            client: format!("{host}:7700"),
            http: format!("{host}:7900"),
            job_host: host.to_owned(),
            job_port_first: first,
            job_port_count: 10,
        };
        let announce = member::Command::Announce { node: NodeId(node), addresses };
        self.submit(Command::Member(announce)).await;
    }

    /// Takes node 2 out, as a membership entry of the log does, and leaves node 1.
    pub(crate) fn remove_the_second(&self) {
        let listed =
            |node: u64| member::Listed { node: NodeId(node), peer: format!("h:{node}"), voter: true };
        let mut state = self.backend.state();
        state.follow_members(&[listed(1), listed(2)]);
        state.follow_members(&[listed(1)]);
        self.backend.replace(state);
    }

    async fn submit(&self, command: Command) {
        self.gateway.submit(command).await.expect("no outage").expect("not refused");
    }

    pub(crate) async fn client(&self) -> AggregatedDiscoveryServiceClient<Channel> {
        let endpoint = Endpoint::from_shared(self.url.clone()).expect("a URL");
        // The protocol's default. Ours is larger than what a test could fill.
        let endpoint = endpoint.initial_stream_window_size(65_535);
        AggregatedDiscoveryServiceClient::new(endpoint.connect().await.expect("a connection"))
    }

    pub(crate) async fn stream(&self) -> Stream {
        let (requests, outgoing) = mpsc::channel(16);
        let call = self.client().await.stream_aggregated_resources(ReceiverStream::new(outgoing)).await;
        Stream { requests, answers: call.expect("a stream").into_inner() }
    }
}

async fn serve(gateway: &Gateway) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let routes = FrontEnds::of(vec![Box::new(Xds::new(gateway.clone()))])
        .routes(PortKind::Client, &JobBinding::Named("default".to_owned()));
    tokio::spawn(Server::builder().add_routes(routes).serve_with_incoming(TcpListenerStream::new(listener)));
    url
}

/// One stream to a node.
pub(crate) struct Stream {
    requests: mpsc::Sender<DiscoveryRequest>,
    answers: Streaming<DiscoveryResponse>,
}

impl Stream {
    pub(crate) async fn send(&self, request: DiscoveryRequest) {
        self.requests.send(request).await.expect("the stream is open");
    }

    /// Asks for these resources, and no others of the type.
    pub(crate) async fn ask(&self, type_url: &str, names: &[&str]) {
        self.send(asking(type_url, names)).await;
    }

    /// Accepts an answer to the question for `names`.
    pub(crate) async fn accept(&self, answer: &DiscoveryResponse, names: &[&str]) {
        let request = DiscoveryRequest {
            version_info: answer.version_info.clone(),
            response_nonce: answer.nonce.clone(),
            ..asking(&answer.type_url, names)
        };
        self.send(request).await;
    }

    /// Refuses an answer to the question for `names`.
    pub(crate) async fn refuse(&self, answer: &DiscoveryResponse, names: &[&str]) {
        let error = rpc::Status { code: 3, message: "does not please".to_owned(), ..Default::default() };
        let request = DiscoveryRequest {
            response_nonce: answer.nonce.clone(),
            error_detail: Some(error),
            ..asking(&answer.type_url, names)
        };
        self.send(request).await;
    }

    /// The next answer, or how the stream ended.
    pub(crate) async fn outcome(&mut self) -> Result<DiscoveryResponse, Status> {
        let answer = tripod_wait::within("an answer", self.answers.message()).await;
        answer.map(|answer| answer.expect("the stream is open"))
    }

    /// The next answer, which must be of that type.
    pub(crate) async fn answer(&mut self, type_url: &str) -> DiscoveryResponse {
        let answer = self.outcome().await.expect("no refusal");
        assert_eq!(answer.type_url, type_url);
        answer
    }

    /// Asks, and accepts the answer as gRPC does.
    pub(crate) async fn get(&mut self, type_url: &str, names: &[&str]) -> DiscoveryResponse {
        self.ask(type_url, names).await;
        let answer = self.answer(type_url).await;
        self.accept(&answer, names).await;
        answer
    }
}

fn asking(type_url: &str, names: &[&str]) -> DiscoveryRequest {
    DiscoveryRequest {
        node: Some(Node { id: "a test".to_owned(), ..Default::default() }),
        type_url: type_url.to_owned(),
        resource_names: names.iter().map(ToString::to_string).collect(),
        ..Default::default()
    }
}

/// The resources of an answer, which must all be of type `T`.
pub(crate) fn unpack<T: Message + Name + Default>(answer: &DiscoveryResponse) -> Vec<T> {
    let unpacked = answer.resources.iter().map(|any| {
        assert_eq!(any.type_url, T::type_url());
        T::decode(any.value.as_slice()).expect("a message")
    });
    unpacked.collect()
}

/// The addresses of an answer about the endpoints of one job.
pub(crate) fn addresses(answer: &DiscoveryResponse) -> Vec<String> {
    let [assignment] = unpack::<ClusterLoadAssignment>(answer).try_into().expect("one job's endpoints");
    let [locality] = assignment.endpoints.try_into().expect("one locality");
    assert!(locality.load_balancing_weight.is_some(), "gRPC leaves out localities without a weight");
    locality.lb_endpoints.into_iter().map(address).collect()
}

fn address(endpoint: LbEndpoint) -> String {
    let Some(HostIdentifier::Endpoint(endpoint)) = endpoint.host_identifier else { panic!("no address") };
    match endpoint.address.and_then(|address| address.address) {
        Some(Address::SocketAddress(SocketAddress {
            address,
            port_specifier: Some(PortSpecifier::PortValue(port)),
            ..
        })) => format!("{address}:{port}"),
        other => panic!("no socket address: {other:?}"),
    }
}
