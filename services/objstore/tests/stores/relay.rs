//! Messages between processes of the store's machine and the cluster, over the store's connections.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, StreamExt as _};
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status, Streaming};
use tripod_proto::metadata::{RAY_SESSION, RAY_WORKER};
use tripod_proto::tripod::v1::local_reply::Told;
use tripod_proto::tripod::v1::local_request::Ask;
use tripod_proto::tripod::v1::ray_line_server::{RayLine, RayLineServer};
use tripod_proto::tripod::v1::ray_peer_line_client::RayPeerLineClient;
use tripod_proto::tripod::v1::{
    LocalBatches, LocalHello, LocalOrders, LocalRelayed, LocalReply, LocalRequest, RayLineRequest,
    RayLineResponse, RayOrder, RayTellRequest, RayTellResponse, RayTold,
};

use crate::support::{Scene, until};

/// A connection as a process has it.
struct Process(UnixStream);

impl Process {
    /// Greets, and is welcomed.
    async fn greet(socket: &Path, workerid: Option<u64>) -> Self {
        let mut process = Self(UnixStream::connect(socket).await.expect("connected"));
        process.ask(Ask::Hello(LocalHello { version: 1, workerid })).await;
        let reply: LocalReply = process.next().await.expect("a reply");
        assert!(matches!(reply.told, Some(Told::Welcome(welcome)) if welcome.relays));
        process
    }

    async fn batches(socket: &Path, node: SocketAddr) -> Self {
        let mut process = Self::greet(socket, Some(7)).await;
        let metadata = HashMap::from([(RAY_SESSION.to_owned(), "of this process".to_owned())]);
        process.ask(Ask::Batches(LocalBatches { endpoint: node.to_string(), metadata })).await;
        process
    }

    async fn orders(socket: &Path, workerid: u64) -> Self {
        let mut process = Self::greet(socket, Some(workerid)).await;
        process.ask(Ask::Orders(LocalOrders {})).await;
        let reply: LocalReply = process.next().await.expect("a reply");
        assert_eq!(reply.code, Code::Ok as i32, "{}", reply.text);
        process
    }

    async fn ask(&mut self, ask: Ask) {
        self.send(&LocalRequest { tag: 1, ask: Some(ask) }).await;
    }

    async fn send(&mut self, message: &impl Message) {
        let mut frame = u32::try_from(message.encoded_len()).expect("short").to_le_bytes().to_vec();
        message.encode(&mut frame).expect("it grows");
        self.0.write_all(&frame).await.expect("sent");
    }

    /// The next message; `None` at the end.
    async fn next<T: Message + Default>(&mut self) -> Option<T> {
        let read = async {
            let length = self.0.read_u32_le().await.ok()?;
            let mut message = vec![0; usize::try_from(length).expect("short")];
            self.0.read_exact(&mut message).await.ok()?;
            Some(T::decode(&message[..]).expect("a message"))
        };
        tripod_wait::within("a message", read).await
    }

    async fn batch(&mut self, seq: u64) -> LocalRelayed {
        self.send(&RayLineRequest { seq, ..RayLineRequest::default() }).await;
        self.next().await.expect("an answer")
    }
}

/// A node: the places of its streams' batches, and whether each stream goes on.
#[derive(Clone, Default)]
struct Node {
    seen: Arc<Mutex<Vec<(String, u64)>>>,
    open: Arc<Mutex<usize>>,
}

struct Open(Arc<Mutex<usize>>);

impl Drop for Open {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
    }
}

#[tonic::async_trait]
impl RayLine for Node {
    type BatchesStream = Pin<Box<dyn Stream<Item = Result<RayLineResponse, Status>> + Send>>;

    /// Answers with the place as the leader's address; place 13 is refused, 14 ends the stream, and 15 cuts it off.
    async fn batches(
        &self,
        request: Request<Streaming<RayLineRequest>>,
    ) -> Result<Response<Self::BatchesStream>, Status> {
        let session = request.metadata().get(RAY_SESSION).expect("told").to_str().expect("text").to_owned();
        let seen = Arc::clone(&self.seen);
        *self.open.lock() += 1;
        let open = Open(Arc::clone(&self.open));
        let answers = request.into_inner().map_while(move |message| {
            let _open = &open;
            let seq = message.ok()?.seq;
            seen.lock().push((session.clone(), seq));
            match seq {
                13 => {
                    let mut status = Status::failed_precondition("not this one");
                    status.metadata_mut().insert("x-tripod-reason", "unlucky".parse().expect("text"));
                    Some(Err(status))
                }
                14 => None,
                15 => Some(Err(Status::unknown("the stream was terminated without a final status"))),
                _ => Some(Ok(RayLineResponse { batch: None, leader: seq.to_string() })),
            }
        });
        Ok(Response::new(Box::pin(answers)))
    }
}

impl Node {
    async fn listen(&self) -> (SocketAddr, JoinHandle<()>) {
        let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = tcp.local_addr().expect("an address");
        let served = Server::builder().add_service(RayLineServer::new(self.clone()));
        let serving = served.serve_with_incoming(TcpListenerStream::new(tcp));
        (address, tokio::spawn(async move { serving.await.expect("served") }))
    }
}

#[tokio::test]
async fn batches_reach_the_node_that_is_named_one_after_the_other() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    let node = Node::default();
    let (address, _serving) = node.listen().await;
    let mut process = Process::batches(store.store.socket(), address).await;
    for seq in 1..=3 {
        let answer = process.batch(seq).await;
        assert_eq!((answer.code, answer.text.as_str()), (0, ""));
        let answer = RayLineResponse::decode(answer.message).expect("the node's");
        assert_eq!(answer.leader, seq.to_string());
    }
    let session = "of this process".to_owned();
    assert_eq!(*node.seen.lock(), [(session.clone(), 1), (session.clone(), 2), (session, 3)]);
    assert_eq!(*node.open.lock(), 1, "one stream");
    // The store has nothing to keep it for when the process is gone.
    drop(process);
    until("the end of the stream", || (*node.open.lock() == 0).then_some(())).await;
}

#[tokio::test]
async fn a_status_of_the_node_comes_as_it_is_and_ends_the_connection() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    let (address, _serving) = Node::default().listen().await;
    let mut process = Process::batches(store.store.socket(), address).await;
    let answer = process.batch(13).await;
    assert_eq!((answer.code, answer.text.as_str()), (Code::FailedPrecondition as i32, "not this one"));
    assert_eq!(answer.metadata.get("x-tripod-reason").map(String::as_str), Some("unlucky"));
    assert!(process.next::<LocalRelayed>().await.is_none(), "it is over");

    for (seq, how) in [(14, "without a status"), (15, "cut off")] {
        let mut process = Process::batches(store.store.socket(), address).await;
        assert_eq!(process.batch(seq).await.code, Code::Unavailable as i32, "it ended {how}");
    }
}

#[tokio::test]
async fn a_node_whose_connection_breaks_is_unavailable_whatever_the_transport_calls_it() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    let (node, _serving) = Node::default().listen().await;
    let between = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = between.local_addr().expect("an address");
    let cable = tokio::spawn(async move {
        let (mut from, _) = between.accept().await.expect("the store");
        let mut to = TcpStream::connect(node).await.expect("the node");
        // It ends by being cut.
        _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
    });
    let mut process = Process::batches(store.store.socket(), address).await;
    assert_eq!(process.batch(1).await.code, 0);
    cable.abort();
    assert!(cable.await.is_err());
    let away = process.batch(2).await;
    assert_eq!(away.code, Code::Unavailable as i32, "{}", away.text);
    let mut process = Process::batches(store.store.socket(), address).await;
    let away = process.batch(1).await;
    assert_eq!(away.code, Code::Unavailable as i32, "nobody listens: {}", away.text);
}

#[tokio::test]
async fn a_process_that_does_not_keep_to_turns_or_names_no_node_is_disconnected() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = tcp.local_addr().expect("an address");
    let mut process = Process::batches(store.store.socket(), address).await;
    process.send(&RayLineRequest::default()).await;
    let _frozen = tcp.accept().await.expect("the store");
    process.send(&RayLineRequest::default()).await;
    assert!(process.next::<LocalRelayed>().await.is_none(), "it was not its turn");

    let mut process = Process::greet(store.store.socket(), None).await;
    process
        .ask(Ask::Batches(LocalBatches { endpoint: "no node".to_owned(), metadata: HashMap::new() }))
        .await;
    let answer = process.batch(1).await;
    assert_eq!(answer.code, Code::InvalidArgument as i32, "{}", answer.text);
    assert!(answer.text.contains("`no node`"), "{}", answer.text);

    let mut process = Process::greet(store.store.socket(), None).await;
    process.ask(Ask::Orders(LocalOrders {})).await;
    let reply: LocalReply = process.next().await.expect("a reply");
    assert_eq!(reply.code, Code::InvalidArgument as i32, "whose orders?");
}

/// A leader's stream to a worker.
struct Leader {
    orders: mpsc::Sender<RayTellRequest>,
    answers: Streaming<RayTellResponse>,
}

/// Opens one with a first message.
async fn leader(store: &str, worker: Option<&str>, orders: usize) -> Result<Leader, Status> {
    let address = format!("http://{store}");
    let mut peer = RayPeerLineClient::connect(address).await.expect("connected");
    let (sender, waiting) = mpsc::channel(1);
    sender.send(many(orders)).await.expect("room");
    let mut request = Request::new(ReceiverStream::new(waiting));
    if let Some(worker) = worker {
        request.metadata_mut().insert(RAY_WORKER, worker.parse().expect("text"));
    }
    Ok(Leader { orders: sender, answers: peer.orders(request).await?.into_inner() })
}

fn many(orders: usize) -> RayTellRequest {
    RayTellRequest { orders: vec![RayOrder::default(); orders] }
}

#[tokio::test]
async fn orders_reach_the_worker_that_takes_them_here_and_no_other() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    let mut worker = Process::orders(store.store.socket(), 7).await;
    let mut leader_of_7 = leader(store.store.address(), Some("7"), 1).await.expect("open");
    for orders in [1, 2, 3] {
        if orders > 1 {
            leader_of_7.orders.send(many(orders)).await.expect("sent");
        }
        let told: RayTellRequest = worker.next().await.expect("orders");
        assert_eq!(told.orders.len(), orders);
        worker.send(&RayTellResponse { orders: vec![RayTold::default(); orders] }).await;
        let answer = leader_of_7.answers.message().await.expect("taken").expect("an answer");
        assert_eq!(answer.orders.len(), orders);
    }
    let code = |refused: Result<Leader, Status>| refused.err().expect("refused").code();
    assert_eq!(code(leader(store.store.address(), Some("8"), 1).await), Code::NotFound);
    assert_eq!(code(leader(store.store.address(), None, 1).await), Code::InvalidArgument);
    assert_eq!(code(leader(store.store.address(), Some("seven"), 1).await), Code::InvalidArgument);

    // A leader that was replaced may still be there.
    let mut next = leader(store.store.address(), Some("7"), 4).await.expect("open");
    let told: RayTellRequest = worker.next().await.expect("orders");
    assert_eq!(told.orders.len(), 4);
    worker.send(&RayTellResponse { orders: vec![RayTold::default(); 4] }).await;
    assert_eq!(next.answers.message().await.expect("taken").expect("an answer").orders.len(), 4);

    leader_of_7.orders.send(many(1)).await.expect("sent");
    let _: RayTellRequest = worker.next().await.expect("orders");
    drop(worker);
    let gone = leader_of_7.answers.message().await.expect_err("it may have them, or not");
    assert_eq!(gone.code(), Code::Unavailable);
    assert_eq!(code(leader(store.store.address(), Some("7"), 1).await), Code::NotFound);
}

#[tokio::test]
async fn connections_that_relay_end_with_the_store_s_registration() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    let (address, _serving) = Node::default().listen().await;
    let mut process = Process::batches(store.store.socket(), address).await;
    let mut worker = Process::orders(store.store.socket(), 7).await;
    assert_eq!(process.batch(1).await.code, 0);
    scene.node.facts.lock().expect("whole").moods.push_back(crate::scheduler::Mood::Expired);
    store.put(1, 10).await;
    assert!(process.next::<LocalRelayed>().await.is_none());
    assert!(worker.next::<RayTellRequest>().await.is_none());
}
