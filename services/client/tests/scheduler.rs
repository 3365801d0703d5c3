//! How a process's calls to the scheduler find their node.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tonic::{Request, Response, Status};
use tripod_client::{Client, Config, Scheduler};
use tripod_lines::Lines;
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
    fn serve(lines: &Lines, address: &str, leader: &str) -> Self {
        let node = Self { calls: Arc::default(), leader: Arc::new(leader.to_owned()) };
        let incoming = lines.listen(address);
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

fn scheduler(lines: &Lines, endpoints: [&str; 2]) -> Scheduler {
    let config = Config::new(endpoints.map(str::to_owned).into());
    let client = Client::connecting(&config, &lines.to_connect()).expect("they are addresses");
    Scheduler::new(client, "", 7, Duration::from_secs(60))
}

#[tokio::test(start_paused = true)]
async fn calls_go_to_the_leader_that_an_answer_names() {
    let lines = Lines::new();
    let follows = Node::serve(&lines, "follower:1", "leader:1");
    let leads = Node::serve(&lines, "leader:1", "leader:1");
    let scheduler = scheduler(&lines, ["follower:1", "leader:1"]);
    for _ in 0..3 {
        scheduler.batch(wire::RayBatchRequest::default()).await.expect("it is answered");
    }
    assert_eq!((follows.calls(), leads.calls()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_address_the_client_does_not_know_changes_nothing() {
    let lines = Lines::new();
    let asked = Node::serve(&lines, "one:1", "elsewhere:7700");
    let other = Node::serve(&lines, "two:1", "elsewhere:7700");
    let scheduler = scheduler(&lines, ["one:1", "two:1"]);
    for _ in 0..3 {
        scheduler.batch(wire::RayBatchRequest::default()).await.expect("it is answered");
    }
    assert_eq!((asked.calls(), other.calls()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_longer_than_an_attempt_is_no_outage() {
    let lines = Lines::new();
    let node = Node::serve(&lines, "node:1", "elsewhere:7700");
    let wanted = wire::RayWaitRequest { objectids: vec![1], at_least: 0, timeout_ms: 3_500 };
    let begun = Instant::now();
    let answer = scheduler(&lines, ["dead:1", "node:1"]).wait(wanted).await.expect("it is no outage");
    assert!(answer.objects.is_empty());
    assert_eq!(begun.elapsed(), Duration::from_millis(3_500));
    assert!(node.calls() >= 2, "it is asked in pieces");
}
