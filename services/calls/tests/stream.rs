//! Streams against a node that does what a test says, over connections within the test.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::service::Routes;
use tonic::transport::{Channel, Server};
use tonic::{Code, Request, Response, Status, Streaming};
use tripod_calls::{CallOptions, CallStream, Hello, Lost, Multiplexed, NoAnswer, Reason, Way};
use tripod_lines::Lines;
use tripod_proto::tripod::v1 as wire;
use wire::calls_server::{Calls, CallsServer};
use wire::kv_client::KvClient;
use wire::kv_server::{Kv, KvServer};

const NODE: &str = "node:1";
const GET: &str = "/tripod.v1.Kv/Get";
/// Longer than anything takes under a clock that stands still.
const LONG: Duration = Duration::from_secs(3600);

/// The test's end of one stream.
struct Conversation {
    from_client: Streaming<wire::Frame>,
    to_client: mpsc::Sender<Result<wire::Frame, Status>>,
}

impl Conversation {
    async fn frame(&mut self) -> wire::Frame {
        self.from_client.next().await.expect("a frame").expect("a whole frame")
    }

    async fn send(&self, frame: wire::Frame) {
        self.to_client.send(Ok(frame)).await.expect("the client listens");
    }

    async fn grant(&self, grant: u32) {
        self.send(wire::Frame { grant, ..wire::Frame::default() }).await;
    }

    async fn answer(&self, answer: wire::Answer) {
        self.send(wire::Frame { answers: vec![answer], grant: 1, ..wire::Frame::default() }).await;
    }
}

#[derive(Clone)]
struct Scripted(mpsc::Sender<Conversation>);

#[tonic::async_trait]
impl Calls for Scripted {
    type OpenStream = ReceiverStream<Result<wire::Frame, Status>>;

    async fn open(
        &self,
        request: Request<Streaming<wire::Frame>>,
    ) -> Result<Response<Self::OpenStream>, Status> {
        let (to_client, frames) = mpsc::channel(16);
        let conversation = Conversation { from_client: request.into_inner(), to_client };
        self.0.send(conversation).await.map_err(|_| Status::unavailable("the test is over"))?;
        Ok(Response::new(ReceiverStream::new(frames)))
    }
}

/// What is called past the stream.
struct Keys;

#[tonic::async_trait]
impl Kv for Keys {
    async fn put(&self, _: Request<wire::PutRequest>) -> Result<Response<wire::PutResponse>, Status> {
        Ok(Response::new(wire::PutResponse { version: 9, index: 9 }))
    }

    async fn get(&self, _: Request<wire::GetRequest>) -> Result<Response<wire::GetResponse>, Status> {
        Ok(Response::new(wire::GetResponse { version: 9, ..wire::GetResponse::default() }))
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

/// A node, and the streams that are opened to it.
struct Node {
    lines: Lines,
    channel: Channel,
    opened: mpsc::Receiver<Conversation>,
}

impl Node {
    async fn start() -> Self {
        let (to_test, opened) = mpsc::channel(4);
        let routes = Routes::new(CallsServer::new(Scripted(to_test))).add_service(KvServer::new(Keys));
        let lines = Lines::new();
        serve(&lines, routes);
        Self { channel: lines.channel(NODE).await, lines, opened }
    }

    /// A stream that has begun, and may be used.
    async fn open(&mut self) -> (CallStream, Conversation) {
        let stream = CallStream::open(self.channel.clone(), &Hello::default()).expect("a hello");
        let mut conversation = self.opened.recv().await.expect("opened");
        assert!(conversation.frame().await.hello.is_some());
        conversation.grant(1024).await;
        (stream, conversation)
    }
}

fn serve(lines: &Lines, routes: Routes) {
    tokio::spawn(Server::builder().add_routes(routes).serve_with_incoming(lines.listen(NODE)));
}

fn plain() -> CallOptions {
    CallOptions::default()
}

fn reply(tag: u32, message: &impl prost::Message) -> wire::Answer {
    wire::Answer { tag, message: message.encode_to_vec().into(), ..wire::Answer::default() }
}

fn stopping(tag: u32) -> wire::Answer {
    let metadata = vec![wire::Metadata { key: "x-tripod-outage".to_owned(), value: "stopping".to_owned() }];
    let (code, text) = (Code::Unavailable as i32, "it stops, 100 %".to_owned());
    wire::Answer {
        tag,
        code,
        text,
        details: Bytes::from_static(b"\0details"),
        metadata,
        ..wire::Answer::default()
    }
}

#[tokio::test(start_paused = true)]
async fn calls_go_when_they_are_granted_and_are_answered_in_any_order() {
    let mut node = Node::start().await;
    let hello = Hello { session: Some(u128::MAX), ..Hello::default() };
    let stream = CallStream::open(node.channel.clone(), &hello).unwrap();
    let options = CallOptions { sequence: 5, acknowledged_below: 4, patience: Some(LONG), ..plain() };
    let first = stream.call(GET, Bytes::from_static(b"1"), &options);
    let second = stream.call(GET, Bytes::from_static(b"2"), &plain());
    let mut conversation = node.opened.recv().await.unwrap();
    let frame = conversation.frame().await;
    assert_eq!(frame.hello.unwrap().session, u128::MAX.to_string());
    assert_eq!((frame.paths, frame.ops.len(), stream.is_ready()), (vec![GET.to_owned()], 0, false));
    conversation.grant(1024).await;
    let frame = conversation.frame().await;
    let seen: Vec<_> = frame.ops.iter().map(|op| (op.tag, op.path, &op.message[..], op.sequence)).collect();
    assert_eq!(seen, [(1, 1, &b"1"[..], 5), (2, 1, b"2", 0)]);
    assert_eq!((frame.ops[0].acknowledged_below, frame.ops[0].patience_ms), (4, 3_600_000));
    let answer = |tag, message: &'static [u8]| wire::Answer {
        tag,
        message: Bytes::from_static(message),
        ..wire::Answer::default()
    };
    conversation.answer(answer(2, b"two")).await;
    conversation.answer(answer(1, b"one")).await;
    assert_eq!(second.await.unwrap().message, "two");
    assert_eq!(first.await.unwrap().message, "one");
    assert!(stream.is_ready() && stream.is_open());
}

#[tokio::test(start_paused = true)]
async fn calls_by_hundreds_go_by_few_frames() {
    let mut node = Node::start().await;
    let (stream, mut conversation) = node.open().await;
    let stream = Arc::new(stream);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let stream = Arc::clone(&stream);
        tasks.spawn(async move { stream.call(GET, Bytes::new(), &plain()).await.unwrap() });
    }
    let (mut frames, mut ops) = (0, 0);
    while ops < 200 {
        let frame = conversation.frame().await;
        frames += 1;
        ops += frame.ops.len();
        let answers = frame.ops.iter().map(|op| reply(op.tag, &wire::GetResponse::default())).collect();
        conversation.send(wire::Frame { answers, grant: 1, ..wire::Frame::default() }).await;
    }
    assert_eq!(tasks.join_all().await.len(), 200);
    assert!(frames <= 6, "{frames} frames");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_waits_for_is_given_up_at_the_node() {
    let mut node = Node::start().await;
    let (stream, mut conversation) = node.open().await;
    let calling = stream.call(GET, Bytes::new(), &plain());
    conversation.frame().await;
    drop(calling);
    let ops = conversation.frame().await.ops;
    assert_eq!((ops.len(), ops[0].tag, ops[0].path), (1, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_goodbye_is_told_to_the_owner_and_the_rest_is_answered() {
    let mut node = Node::start().await;
    let (stream, mut conversation) = node.open().await;
    let taken = stream.call(GET, Bytes::new(), &plain());
    conversation.frame().await;
    assert!(!stream.is_leaving());
    conversation.send(wire::Frame { bye: Some(wire::Bye {}), ..wire::Frame::default() }).await;
    tokio::time::timeout(LONG, stream.left()).await.unwrap();
    assert!(stream.has_goodbye());
    let late = stream.call(GET, Bytes::new(), &plain()).await;
    assert_eq!(late, Err(Lost::NotSent(Reason::Leaving)));
    conversation.answer(stopping(1)).await;
    let answer = taken.await.unwrap();
    assert_eq!((answer.code, answer.outage()), (Code::Unavailable, Some("stopping")));
    drop(conversation);
    tripod_wait::until_async("the end", || async { stream.end() }).await;
}

/// A transport that gives up what is to be sent, and has not heard yet what became of the connection.
struct GivesUp;

impl Service<http::Request<Body>> for GivesUp {
    type Response = http::Response<Body>;
    type Error = Status;
    type Future = std::future::Pending<Result<http::Response<Body>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        drop(request);
        std::future::pending()
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_transport_gives_up_takes_no_more_calls_and_had_no_goodbye() {
    let stream = CallStream::open(GivesUp, &Hello::default()).expect("a hello");
    tokio::time::timeout(LONG, stream.left()).await.expect("it takes no more calls");
    let late = stream.call(GET, Bytes::new(), &plain()).await;
    assert_eq!(late, Err(Lost::NotSent(Reason::Leaving)));
    assert_eq!((stream.end(), stream.has_goodbye()), (None, false));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_stream_says_nothing_of_what_was_sent() {
    for broken in [false, true] {
        let mut node = Node::start().await;
        let (stream, mut conversation) = node.open().await;
        let calling = stream.call(GET, Bytes::new(), &plain());
        conversation.frame().await;
        if broken {
            node.lines.close(NODE);
        }
        drop(conversation);
        let lost = calling.await.unwrap_err();
        assert!(matches!(lost, Lost::Unknown(_)), "{lost}");
        let late = stream.call(GET, Bytes::new(), &plain()).await.unwrap_err();
        assert_eq!(late, Lost::NotSent(lost.reason().clone()));
    }
}

#[tokio::test(start_paused = true)]
async fn what_no_node_sends_ends_the_stream_and_every_call() {
    let unknown = wire::Frame { answers: vec![stopping(77)], ..wire::Frame::default() };
    let nonsense = wire::Frame { paths: vec![GET.to_owned()], ..wire::Frame::default() };
    for frame in [unknown, nonsense] {
        let mut node = Node::start().await;
        let (stream, mut conversation) = node.open().await;
        let calling = stream.call(GET, Bytes::new(), &plain());
        conversation.frame().await;
        conversation.send(frame).await;
        let lost = calling.await.unwrap_err();
        assert!(matches!(lost, Lost::Unknown(Reason::Breach(_))), "{lost}");
        conversation.to_client.closed().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_older_node_is_told_from_one_that_refuses() {
    let lines = Lines::new();
    serve(&lines, Routes::new(KvServer::new(Keys)));
    let channel = lines.channel(NODE).await;
    let stream = CallStream::open(channel, &Hello::default()).unwrap();
    let lost = stream.call(GET, Bytes::new(), &plain()).await.unwrap_err();
    assert!(matches!(lost, Lost::NotSent(_)), "{lost}");
    let end = tripod_wait::until_async("the end", || async { stream.end() }).await;
    assert_eq!((end, stream.is_ready()), (Reason::NotServed, false));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_nobody_holds_is_ended_when_its_calls_are_answered() {
    let mut node = Node::start().await;
    let (stream, mut conversation) = node.open().await;
    let calling = stream.call(GET, Bytes::new(), &plain());
    drop(stream);
    conversation.frame().await;
    conversation.answer(reply(1, &wire::GetResponse::default())).await;
    assert!(calling.await.is_ok());
    conversation.to_client.closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_generated_client_has_message_metadata_and_trailers_both_ways() {
    let mut node = Node::start().await;
    let (stream, mut conversation) = node.open().await;
    let mut client = KvClient::new(Multiplexed::new(stream));
    let asked = tokio::spawn(async move {
        let mut request =
            Request::new(wire::GetRequest { key: "k".to_owned(), ..wire::GetRequest::default() });
        request.metadata_mut().insert("x-tripod-job", "train".parse().unwrap());
        request.metadata_mut().insert_bin("x-raw-bin", tonic::metadata::MetadataValue::from_bytes(b"\0\xff"));
        request.set_timeout(Duration::from_secs(2));
        (client.get(request).await, client.get(wire::GetRequest::default()).await)
    });
    let op = conversation.frame().await.ops.remove(0);
    assert_eq!(wire::GetRequest::decode(op.message).unwrap().key, "k");
    assert_eq!(op.patience_ms, 2000);
    let mut said: Vec<_> = op.metadata.iter().map(|one| (one.key.as_str(), one.value.as_str())).collect();
    said.sort_unstable();
    assert_eq!(said, [("x-raw-bin", "AP8"), ("x-tripod-job", "train")]);
    let metadata = vec![wire::Metadata { key: "x-tripod-leader".to_owned(), value: "b:1".to_owned() }];
    let found = wire::GetResponse { found: true, version: 3, ..wire::GetResponse::default() };
    conversation.answer(wire::Answer { metadata, ..reply(op.tag, &found) }).await;
    let op = conversation.frame().await.ops.remove(0);
    conversation.answer(stopping(op.tag)).await;
    let (answer, refused) = asked.await.unwrap();
    let answer = answer.unwrap();
    assert_eq!(answer.metadata().get("x-tripod-leader").unwrap(), "b:1");
    assert_eq!(answer.into_inner().version, 3);
    let refused = refused.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::Unavailable, "it stops, 100 %"));
    assert_eq!(refused.details(), b"\0details");
    assert_eq!(refused.metadata().get("x-tripod-outage").unwrap(), "stopping");
}

#[tokio::test(start_paused = true)]
async fn a_generated_client_hears_whether_a_call_may_have_been_executed() {
    let mut node = Node::start().await;
    let (stream, conversation) = node.open().await;
    let mut client = KvClient::new(Multiplexed::new(stream.clone()));
    let value = Bytes::from(vec![0; tripod_calls::OP_MESSAGE_BYTES_MAX + 1]);
    let put = wire::PutRequest { value, ..wire::PutRequest::default() };
    assert_eq!(why(&client.put(put).await.unwrap_err()), Some(&NoAnswer::NeedsOwnCall));
    drop(conversation);
    let lost = client.get(wire::GetRequest::default()).await.unwrap_err();
    assert!(matches!(why(&lost), Some(NoAnswer::Lost(_))), "{lost:?}");
}

fn why(status: &Status) -> Option<&NoAnswer> {
    std::error::Error::source(status)?.downcast_ref()
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_time_is_over_ends_as_by_a_connection_and_is_given_up() {
    let mut node = Node::start().await;
    let (stream, mut conversation) = node.open().await;
    let mut request = Request::new(wire::GetRequest::default());
    request.set_timeout(Duration::from_secs(2));
    let status = KvClient::new(Multiplexed::new(stream.clone())).get(request).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Cancelled, "Timeout expired"));
    assert_eq!(conversation.frame().await.ops[0].path, 1);
    assert_eq!(conversation.frame().await.ops[0].path, 0);
    assert!(stream.is_open());
}

#[tokio::test(start_paused = true)]
async fn what_no_stream_takes_goes_by_a_call_of_its_own() {
    let mut node = Node::start().await;
    let (stream, conversation) = node.open().await;
    let mut client = KvClient::new(Way::new(node.channel.clone(), Some(stream)));
    let value = Bytes::from(vec![0; tripod_calls::OP_MESSAGE_BYTES_MAX + 1]);
    let put = wire::PutRequest { value, ..wire::PutRequest::default() };
    assert_eq!(client.put(put).await.unwrap().into_inner().version, 9);
    conversation.send(wire::Frame { bye: Some(wire::Bye {}), ..wire::Frame::default() }).await;
    // Until the goodbye has come, calls are sent, and this node answers none.
    let version = tripod_wait::until_async("the goodbye", || {
        let mut client = client.clone();
        async move {
            let get = client.get(wire::GetRequest::default());
            tokio::time::timeout(Duration::from_millis(10), get).await.ok()
        }
    });
    assert_eq!(version.await.unwrap().into_inner().version, 9);
}

#[tokio::test(start_paused = true)]
async fn a_way_without_a_stream_is_the_connection() {
    let node = Node::start().await;
    let mut client = KvClient::new(Way::new(node.channel.clone(), None));
    assert_eq!(client.get(wire::GetRequest::default()).await.unwrap().into_inner().version, 9);
}
