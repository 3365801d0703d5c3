//! Which calls go by streams, and what becomes of them when a stream ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};
use tripod_client::{Client, Condition, Config, Consistency};
use tripod_lines::Lines;
use tripod_proto::tripod::v1 as wire;
use wire::calls_server::{Calls, CallsServer};
use wire::kv_server::{Kv, KvServer};
use wire::sessions_server::{Sessions, SessionsServer};

/// What a node does with streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It answers every op with an empty message, until it is to break.
    Answer,
    /// It says nothing at all.
    Mute,
    /// It does not know them.
    Old,
}

/// A node that remembers what it was called.
#[derive(Clone)]
struct Node {
    manner: Manner,
    /// Whether a stream ends when an op has come.
    breaks: Arc<AtomicBool>,
    streams: Arc<AtomicUsize>,
    /// The messages of ops.
    ops: Arc<Mutex<Vec<Bytes>>>,
    /// Calls by themselves.
    single: Arc<Mutex<Vec<&'static str>>>,
    /// Of single puts.
    stamps: Arc<Mutex<Vec<wire::Stamp>>>,
}

impl Node {
    fn of(manner: Manner) -> Self {
        Self {
            manner,
            breaks: Arc::default(),
            streams: Arc::default(),
            ops: Arc::default(),
            single: Arc::default(),
            stamps: Arc::default(),
        }
    }

    fn serve(manner: Manner, lines: &Lines, address: &str) -> Self {
        let node = Self::of(manner);
        tokio::spawn(Server::builder().add_routes(node.routes()).serve_with_incoming(lines.listen(address)));
        node
    }

    fn routes(&self) -> Routes {
        let routes = Routes::new(KvServer::new(self.clone())).add_service(SessionsServer::new(self.clone()));
        match self.manner {
            Manner::Old => routes,
            Manner::Answer | Manner::Mute => routes.add_service(CallsServer::new(self.clone())),
        }
    }

    fn called(&self) -> (usize, Vec<&'static str>) {
        (self.ops.lock().len(), self.single.lock().clone())
    }
}

#[tonic::async_trait]
impl Calls for Node {
    type OpenStream = ReceiverStream<Result<wire::Frame, Status>>;

    async fn open(
        &self,
        request: Request<Streaming<wire::Frame>>,
    ) -> Result<Response<Self::OpenStream>, Status> {
        self.streams.fetch_add(1, Ordering::Relaxed);
        let (to_client, frames) = mpsc::channel(16);
        let (node, mut from_client) = (self.clone(), request.into_inner());
        tokio::spawn(async move {
            while let Some(Ok(frame)) = from_client.next().await {
                let ops = frame.ops.into_iter().filter(|op| op.path != 0);
                let answers = ops.map(|op| {
                    node.ops.lock().push(op.message);
                    wire::Answer { tag: op.tag, ..wire::Answer::default() }
                });
                let answers: Vec<_> = answers.collect();
                if node.breaks.load(Ordering::Relaxed) && !answers.is_empty() {
                    return;
                }
                let frame = wire::Frame { answers, grant: 1024, ..wire::Frame::default() };
                if node.manner == Manner::Answer && to_client.send(Ok(frame)).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(frames)))
    }
}

#[tonic::async_trait]
impl Kv for Node {
    async fn put(&self, request: Request<wire::PutRequest>) -> Result<Response<wire::PutResponse>, Status> {
        self.single.lock().push("put");
        self.stamps.lock().extend(request.into_inner().stamp);
        Ok(Response::new(wire::PutResponse { version: 1, index: 1 }))
    }

    async fn get(&self, _: Request<wire::GetRequest>) -> Result<Response<wire::GetResponse>, Status> {
        self.single.lock().push("get");
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
        self.single.lock().push("open");
        Ok(Response::new(wire::OpenSessionResponse { session: 7, session_high: 0 }))
    }

    async fn close(
        &self,
        _: Request<wire::CloseSessionRequest>,
    ) -> Result<Response<wire::CloseSessionResponse>, Status> {
        Ok(Response::new(wire::CloseSessionResponse {}))
    }
}

fn config(endpoints: &[&str]) -> Config {
    let endpoints = endpoints.iter().map(|endpoint| (*endpoint).to_owned()).collect();
    Config { timeout: Duration::from_secs(30), ..Config::new(endpoints) }
}

fn client(lines: &Lines, endpoints: &[&str]) -> Client {
    Client::connecting(&config(endpoints), &lines.to_connect()).expect("good addresses")
}

async fn get(client: &Client) {
    assert_eq!(client.kv("").get("k", Consistency::Linearizable).await.expect("answered"), None);
}

/// Calls until the stream is used.
async fn warm_up(client: &Client, node: &Node) {
    let used = || async {
        get(client).await;
        (!node.ops.lock().is_empty()).then_some(())
    };
    tripod_wait::until_async("a call by a stream", used).await;
}

#[tokio::test(start_paused = true)]
async fn a_lone_call_goes_by_itself_and_those_after_it_by_one_stream_as_soon_as_that_is_open() {
    let lines = Lines::new();
    let node = Node::serve(Manner::Answer, &lines, "node:1");
    let client = client(&lines, &["node:1"]);
    get(&client).await;
    assert_eq!((node.called(), node.streams.load(Ordering::Relaxed)), ((0, vec!["get"]), 0));
    warm_up(&client, &node).await;
    let (ops, single) = node.called();
    assert!(single.len() >= 2, "the second does not wait for the stream that it opens");
    for _ in 0..3 {
        get(&client).await;
    }
    assert_eq!((node.called(), node.streams.load(Ordering::Relaxed)), ((ops + 3, single), 1));
}

#[tokio::test]
async fn a_client_without_streams_opens_none() {
    // It cannot be told how to connect, so there is a socket.
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let address = incoming.local_addr().expect("bound").to_string();
    let node = Node::of(Manner::Answer);
    tokio::spawn(Server::builder().add_routes(node.routes()).serve_with_incoming(incoming));
    let client = Client::without_streams(&config(&[&address])).expect("good addresses");
    for _ in 0..4 {
        get(&client).await;
    }
    assert_eq!((node.called(), node.streams.load(Ordering::Relaxed)), ((0, vec!["get"; 4]), 0));
}

#[tokio::test(start_paused = true)]
async fn nodes_without_streams_and_those_whose_streams_never_come_through_are_called_by_single_calls() {
    for manner in [Manner::Old, Manner::Mute] {
        let lines = Lines::new();
        let node = Node::serve(manner, &lines, "node:1");
        let client = client(&lines, &["node:1"]);
        for _ in 0..9 {
            get(&client).await;
        }
        assert_eq!(node.called(), (0, vec!["get"; 9]), "{manner:?}");
        assert!(node.streams.load(Ordering::Relaxed) <= 1, "{manner:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_value_goes_by_itself() {
    let lines = Lines::new();
    let node = Node::serve(Manner::Answer, &lines, "node:1");
    let client = client(&lines, &["node:1"]);
    warm_up(&client, &node).await;
    let kv = client.kv("");
    kv.put("k", Bytes::from(vec![0; 60 << 10]), Condition::Always).await.expect("written");
    let (ops, single) = node.called();
    assert!(!single.contains(&"put") && !single.contains(&"open"), "{single:?}");
    kv.put("k", Bytes::from(vec![0; 65 << 10]), Condition::Always).await.expect("written");
    assert_eq!(node.called(), (ops, [single, vec!["put"]].concat()));
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_stream_broke_is_sent_again_with_its_stamp() {
    let lines = Lines::new();
    let first = Node::serve(Manner::Answer, &lines, "one:1");
    let second = Node::serve(Manner::Answer, &lines, "two:1");
    let client = client(&lines, &["one:1", "two:1"]);
    warm_up(&client, &first).await;
    let kv = client.kv("");
    kv.put("k", Bytes::from("v"), Condition::Always).await.expect("written");
    first.breaks.store(true, Ordering::Relaxed);
    kv.put("k", Bytes::from("w"), Condition::Always).await.expect("written");
    let sent = first.ops.lock().last().cloned().expect("an op");
    let sent = <wire::PutRequest as prost::Message>::decode(sent).expect("a put");
    assert!(sent.stamp.is_some() && sent.value == "w");
    assert_eq!(second.stamps.lock().as_slice(), sent.stamp.as_slice());
    assert_eq!(second.called(), (0, vec!["put"]));
}
