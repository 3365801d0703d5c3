//! How the client moves between nodes: services that refuse, hang or are not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tonic::{Request, Response, Status};
use tripod_client::{Client, Condition, Config, Consistency, Error, Nodes, Phase};
use tripod_lines::Lines;
use tripod_proto::tripod::v1 as wire;
use tripod_wait::Nobody;
use wire::kv_server::{Kv, KvServer};
use wire::sessions_server::{Sessions, SessionsServer};

/// What a scripted node does with calls.
#[derive(Debug, Clone, Copy)]
enum Manner {
    Answer,
    /// It says that it did nothing.
    Unavailable,
    /// It says that it did nothing, as it knows no leader.
    NoLeader,
    /// It says that it may have done it.
    OutcomeUnknown,
    Hang,
}

/// A node that remembers the stamps of puts.
#[derive(Clone)]
struct Node {
    manner: Manner,
    calls: Arc<AtomicU64>,
    stamps: Arc<parking_lot::Mutex<Vec<wire::Stamp>>>,
}

impl Node {
    /// At a place that nobody else has.
    fn serve(manner: Manner, lines: &Lines, address: &str) -> Self {
        let node = Self { manner, calls: Arc::default(), stamps: Arc::default() };
        let server = tonic::transport::Server::builder()
            .add_service(KvServer::new(node.clone()))
            .add_service(SessionsServer::new(node.clone()))
            .serve_with_incoming(lines.listen(address));
        tokio::spawn(server);
        node
    }

    async fn behave(&self) -> Result<(), Status> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match self.manner {
            Manner::Answer => Ok(()),
            Manner::Unavailable => Err(Status::unavailable("stopping")),
            Manner::NoLeader => {
                let mut status = Status::unavailable("no leader for 5 ms");
                status.metadata_mut().insert("tripod-reason", "no-leader".parse().expect("ASCII"));
                Err(status)
            }
            Manner::OutcomeUnknown => {
                let mut status = Status::unavailable("the leader was lost");
                status.metadata_mut().insert("tripod-reason", "outcome-unknown".parse().expect("ASCII"));
                Err(status)
            }
            Manner::Hang => std::future::pending().await,
        }
    }
}

#[tonic::async_trait]
impl Kv for Node {
    async fn put(&self, request: Request<wire::PutRequest>) -> Result<Response<wire::PutResponse>, Status> {
        self.stamps.lock().extend(request.into_inner().stamp);
        self.behave().await?;
        Ok(Response::new(wire::PutResponse { version: 1, index: 1 }))
    }

    async fn get(&self, _: Request<wire::GetRequest>) -> Result<Response<wire::GetResponse>, Status> {
        self.behave().await?;
        Ok(Response::new(wire::GetResponse::default()))
    }

    async fn delete(
        &self,
        _: Request<wire::DeleteRequest>,
    ) -> Result<Response<wire::DeleteResponse>, Status> {
        Err(Status::unimplemented("not scripted"))
    }

    async fn list(&self, _: Request<wire::ListRequest>) -> Result<Response<wire::ListResponse>, Status> {
        Err(Status::unimplemented("not scripted"))
    }
}

#[tonic::async_trait]
impl Sessions for Node {
    async fn open(
        &self,
        _: Request<wire::OpenSessionRequest>,
    ) -> Result<Response<wire::OpenSessionResponse>, Status> {
        Ok(Response::new(wire::OpenSessionResponse { session: 7, session_high: 0 }))
    }

    async fn close(
        &self,
        _: Request<wire::CloseSessionRequest>,
    ) -> Result<Response<wire::CloseSessionResponse>, Status> {
        Ok(Response::new(wire::CloseSessionResponse {}))
    }
}

fn client(lines: &Lines, endpoints: &[&str], timeout: Duration) -> Client {
    let endpoints = endpoints.iter().map(|endpoint| (*endpoint).to_owned()).collect();
    Client::connecting(&Config { endpoints, timeout }, &lines.to_connect()).expect("good addresses")
}

#[tokio::test(start_paused = true)]
async fn dead_and_unavailable_nodes_are_passed_over() {
    let lines = Lines::new();
    let refusing = Node::serve(Manner::Unavailable, &lines, "second:1");
    Node::serve(Manner::Answer, &lines, "third:1");
    let client = client(&lines, &["dead:1", "second:1", "third:1"], Duration::from_secs(10));
    for _ in 0..3 {
        assert_eq!(client.kv("").get("k", Consistency::Local).await.expect("answered"), None);
    }
    assert_eq!(refusing.calls.load(Ordering::Relaxed), 1, "the node that answered is asked first next time");
}

#[tokio::test(start_paused = true)]
async fn a_write_goes_on_elsewhere_with_the_same_stamp() {
    let lines = Lines::new();
    let first = Node::serve(Manner::OutcomeUnknown, &lines, "one:1");
    let second = Node::serve(Manner::Answer, &lines, "two:1");
    let client = client(&lines, &["one:1", "two:1"], Duration::from_secs(10));
    client.kv("").put("k", Bytes::from("v"), Condition::Always).await.expect("written");
    let stamps = |node: &Node| node.stamps.lock().clone();
    assert_eq!(stamps(&first), stamps(&second));
    assert_eq!(stamps(&first).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_node_does_not_use_up_the_time() {
    let lines = Lines::new();
    Node::serve(Manner::Hang, &lines, "hanging:1");
    Node::serve(Manner::Answer, &lines, "answering:1");
    let begun = Instant::now();
    let client = client(&lines, &["hanging:1", "answering:1"], Duration::from_secs(30));
    client.kv("").get("k", Consistency::Linearizable).await.expect("answered by the other");
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn out_of_time_tells_every_node_and_phase() {
    let lines = Lines::new();
    Node::serve(Manner::Unavailable, &lines, "refusing:1");
    Node::serve(Manner::NoLeader, &lines, "leaderless:1");
    let client = client(&lines, &["dead:1", "refusing:1", "leaderless:1"], Duration::from_secs(1));
    let error = client.kv("").get("k", Consistency::Linearizable).await.expect_err("nobody answers");
    assert_eq!(error.phase(), Some(Phase::Leader));
    let Error::Unavailable { attempts, .. } = error else { panic!("not unavailable: {error}") };
    let seen: Vec<_> = attempts.iter().map(|attempt| (attempt.endpoint.as_str(), attempt.phase)).collect();
    let expected = [("dead:1", Phase::Connect), ("refusing:1", Phase::Call), ("leaderless:1", Phase::Leader)];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn names_that_are_not_known_and_ports_where_nobody_listens_are_told_apart() {
    // No resolver takes a label of more than 63 characters, so none is asked.
    let unknown = format!("{}:1", "x".repeat(64));
    let nobody = Nobody::at_a_port();
    let nodes = Nodes::new(&[unknown, nobody.address()]).expect("good addresses");
    let phase = async |place| nodes.channel(place).await.expect_err("nobody is there").phase;
    assert_eq!([phase(0).await, phase(1).await], [Phase::Resolve, Phase::Connect]);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_may_have_happened_is_told_as_that() {
    let lines = Lines::new();
    Node::serve(Manner::OutcomeUnknown, &lines, "node:1");
    let client = client(&lines, &["node:1"], Duration::from_millis(300));
    let error = client.kv("").put("k", Bytes::new(), Condition::Always).await.expect_err("never answered");
    assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error}");
}
