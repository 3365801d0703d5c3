//! How the client moves between nodes: services that refuse, hang or are not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::net::TcpListener;
use tonic::{Request, Response, Status};
use tripod_client::{Client, Condition, Config, Consistency, Error, Phase};
use tripod_proto::tripod::v1 as wire;
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
    async fn serve(manner: Manner) -> (Self, String) {
        let node = Self { manner, calls: Arc::default(), stamps: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let incoming = tonic::transport::server::TcpIncoming::from(listener);
        let server = tonic::transport::Server::builder()
            .add_service(KvServer::new(node.clone()))
            .add_service(SessionsServer::new(node.clone()))
            .serve_with_incoming(incoming);
        tokio::spawn(server);
        (node, address)
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
        Ok(Response::new(wire::OpenSessionResponse { session: 7 }))
    }

    async fn close(
        &self,
        _: Request<wire::CloseSessionRequest>,
    ) -> Result<Response<wire::CloseSessionResponse>, Status> {
        Ok(Response::new(wire::CloseSessionResponse {}))
    }
}

/// An address at which nobody listens.
async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    listener.local_addr().expect("bound").to_string()
}

fn client(endpoints: Vec<String>, timeout: Duration) -> Client {
    Client::new(&Config { endpoints, timeout }).expect("good addresses")
}

#[tokio::test]
async fn dead_and_unavailable_nodes_are_passed_over() {
    let (refusing, second) = Node::serve(Manner::Unavailable).await;
    let (_, third) = Node::serve(Manner::Answer).await;
    let client = client(vec![nobody().await, second, third], Duration::from_secs(10));
    for _ in 0..3 {
        assert_eq!(client.kv("").get("k", Consistency::Local).await.expect("answered"), None);
    }
    assert_eq!(refusing.calls.load(Ordering::Relaxed), 1, "the node that answered is asked first next time");
}

#[tokio::test]
async fn a_write_goes_on_elsewhere_with_the_same_stamp() {
    let (first, one) = Node::serve(Manner::OutcomeUnknown).await;
    let (second, two) = Node::serve(Manner::Answer).await;
    let client = client(vec![one, two], Duration::from_secs(10));
    client.kv("").put("k", Bytes::from("v"), Condition::Always).await.expect("written");
    let stamps = |node: &Node| node.stamps.lock().clone();
    assert_eq!(stamps(&first), stamps(&second));
    assert_eq!(stamps(&first).len(), 1);
}

#[tokio::test]
async fn a_hanging_node_does_not_use_up_the_time() {
    let (_, hanging) = Node::serve(Manner::Hang).await;
    let (_, answering) = Node::serve(Manner::Answer).await;
    let begun = Instant::now();
    let client = client(vec![hanging, answering], Duration::from_secs(30));
    client.kv("").get("k", Consistency::Linearizable).await.expect("answered by the other");
    assert!(begun.elapsed() < Duration::from_secs(15), "took {:?}", begun.elapsed());
}

#[tokio::test]
async fn out_of_time_tells_every_node_and_phase() {
    // No resolver takes a label of more than 63 characters, so none is asked.
    let unknown = format!("{}:1", "x".repeat(64));
    let dead = nobody().await;
    let (_, refusing) = Node::serve(Manner::Unavailable).await;
    let (_, leaderless) = Node::serve(Manner::NoLeader).await;
    let nodes = vec![unknown.clone(), dead.clone(), refusing.clone(), leaderless.clone()];
    let client = client(nodes, Duration::from_secs(1));
    let error = client.kv("").get("k", Consistency::Linearizable).await.expect_err("nobody answers");
    assert_eq!(error.phase(), Some(Phase::Leader));
    let Error::Unavailable { attempts, .. } = error else { panic!("not unavailable: {error}") };
    let seen: Vec<_> = attempts.iter().map(|attempt| (attempt.endpoint.clone(), attempt.phase)).collect();
    let expected = [
        (unknown, Phase::Resolve),
        (dead, Phase::Connect),
        (refusing, Phase::Call),
        (leaderless, Phase::Leader),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_write_that_may_have_happened_is_told_as_that() {
    let (_, node) = Node::serve(Manner::OutcomeUnknown).await;
    let client = client(vec![node], Duration::from_millis(300));
    let error = client.kv("").put("k", Bytes::new(), Condition::Always).await.expect_err("never answered");
    assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error}");
}
