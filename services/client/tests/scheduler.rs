//! How a process's calls to the scheduler find their node.

use std::net::TcpListener as Port;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tonic::{Request, Response, Status};
use tripod_client::{Client, Config, Scheduler};
use tripod_proto::metadata::RAY_LEADER;
use tripod_proto::tripod::v1 as wire;
use wire::ray_server::{Ray, RayServer};

/// A node that answers everything, and says who leads.
#[derive(Clone)]
struct Node {
    calls: Arc<AtomicU64>,
    leader: Arc<String>,
}

impl Node {
    async fn serve(listener: TcpListener, leader: &str) -> Self {
        let node = Self { calls: Arc::default(), leader: Arc::new(leader.to_owned()) };
        let incoming = tonic::transport::server::TcpIncoming::from(listener);
        let server = tonic::transport::Server::builder().add_service(RayServer::new(node.clone()));
        tokio::spawn(server.serve_with_incoming(incoming));
        node
    }

    fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

#[tonic::async_trait]
impl Ray for Node {
    async fn batch(
        &self,
        _: Request<wire::RayBatchRequest>,
    ) -> Result<Response<wire::RayBatchResponse>, Status> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut response = Response::new(wire::RayBatchResponse::default());
        response.metadata_mut().insert(RAY_LEADER, self.leader.parse().expect("an address"));
        Ok(response)
    }

    /// Nothing is ever decided.
    async fn wait(
        &self,
        request: Request<wire::RayWaitRequest>,
    ) -> Result<Response<wire::RayWaitResponse>, Status> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(request.into_inner().timeout_ms)).await;
        Ok(Response::new(wire::RayWaitResponse::default()))
    }

    async fn status(
        &self,
        _: Request<wire::RayStatusRequest>,
    ) -> Result<Response<wire::RayStatusResponse>, Status> {
        Err(Status::unimplemented("not scripted"))
    }

    async fn tasks(
        &self,
        _: Request<wire::RayTasksRequest>,
    ) -> Result<Response<wire::RayTasksResponse>, Status> {
        Err(Status::unimplemented("not scripted"))
    }
}

fn scheduler(endpoints: Vec<String>) -> Scheduler {
    let client = Client::new(&Config::new(endpoints)).expect("they are addresses");
    Scheduler::new(client, "", 7, Duration::from_secs(60))
}

async fn port() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    (listener, address)
}

#[tokio::test]
async fn calls_go_to_the_leader_that_an_answer_names() {
    let ((first, follower), (second, leader)) = (port().await, port().await);
    let follows = Node::serve(first, &leader).await;
    let leads = Node::serve(second, &leader).await;
    let scheduler = scheduler(vec![follower, leader]);
    for _ in 0..3 {
        scheduler.batch(wire::RayBatchRequest::default()).await.expect("it is answered");
    }
    assert_eq!((follows.calls(), leads.calls()), (1, 2));
}

#[tokio::test]
async fn a_leader_whose_address_the_client_does_not_know_changes_nothing() {
    let ((first, one), (second, two)) = (port().await, port().await);
    let asked = Node::serve(first, "elsewhere:7700").await;
    let other = Node::serve(second, "elsewhere:7700").await;
    let scheduler = scheduler(vec![one, two]);
    for _ in 0..3 {
        scheduler.batch(wire::RayBatchRequest::default()).await.expect("it is answered");
    }
    assert_eq!((asked.calls(), other.calls()), (3, 0));
}

#[tokio::test]
async fn a_wait_that_is_longer_than_an_attempt_is_no_outage() {
    let (listener, address) = port().await;
    // Nobody listens there any more.
    let dead = Port::bind("127.0.0.1:0").and_then(|port| port.local_addr()).expect("a free port").to_string();
    let node = Node::serve(listener, "elsewhere:7700").await;
    let wanted = wire::RayWaitRequest { objectids: vec![1], at_least: 0, timeout_ms: 3_500 };
    let begun = Instant::now();
    let answer = scheduler(vec![dead, address]).wait(wanted).await.expect("it is no outage");
    assert!(answer.objects.is_empty());
    assert!(begun.elapsed() >= Duration::from_millis(3_400), "{:?}", begun.elapsed());
    assert!(node.calls() >= 2, "it is asked in pieces");
}
