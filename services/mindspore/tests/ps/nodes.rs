//! Nodes that are as real as their frames.

use bytes::{Bytes, BytesMut};
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tripod_mindspore::wire::Frame as _;
use tripod_mindspore::wire::ps::{Format, Frame};
use tripod_proto::mindspore::ps_core as pb;
use tripod_proto::mindspore::ps_core::{MessageMeta, NodeCommand, NodeRole};

use crate::support::Cluster;

/// The rank of a node that has none.
pub(crate) const NO_RANK: u32 = u32::MAX;

/// One connection to the scheduler.
pub(crate) struct Client {
    stream: DuplexStream,
    buffer: BytesMut,
    requests: u64,
}

impl Client {
    pub(crate) fn new(stream: DuplexStream) -> Self {
        Self { stream, buffer: BytesMut::new(), requests: 0 }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        // A node that ends the connection takes no more of it.
        let _ = self.stream.write_all(bytes).await;
    }

    /// The next frame; `None` when the connection is ended.
    pub(crate) async fn hear(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = Frame::take(&mut self.buffer).unwrap() {
                return Some(frame);
            }
            if self.stream.read_buf(&mut self.buffer).await.unwrap_or(0) == 0 {
                assert!(self.buffer.is_empty(), "it ends within a frame");
                return None;
            }
        }
    }

    /// Says nothing more, and listens still.
    pub(crate) async fn end(&mut self) {
        self.stream.shutdown().await.expect("a connection");
    }

    /// Gives a command, and the meta by which its answer is known.
    pub(crate) async fn say(&mut self, command: i32, rank_id: u32, payload: impl Into<Bytes>) -> MessageMeta {
        self.requests += 1;
        let meta = MessageMeta { cmd: command, request_id: self.requests, rank_id, ..Default::default() };
        let frame = Frame { format: Format::Protobuf, meta: meta.clone(), payload: payload.into() };
        self.send(&frame.encode()).await;
        meta
    }

    /// What a command is answered.
    pub(crate) async fn ask(&mut self, command: NodeCommand, payload: impl Into<Bytes>) -> Bytes {
        let meta = self.say(command.into(), 0, payload).await;
        self.answer(&meta).await
    }

    /// The answer to what was asked with that meta, which is the next one.
    pub(crate) async fn answer(&mut self, meta: &MessageMeta) -> Bytes {
        let Frame { format, meta: answered, payload } = self.hear().await.expect("an answer");
        assert_eq!((format, &answered), (Format::Protobuf, meta));
        payload
    }

    /// All nodes, as the scheduler lists them.
    pub(crate) async fn fetch(&mut self) -> Vec<pb::ServersMeta> {
        let message = pb::FetchServersMessage::default().encode_to_vec();
        let payload = self.ask(NodeCommand::FetchMetadata, message).await;
        pb::FetchServersRespMessage::decode(payload).unwrap().servers_meta
    }

    pub(crate) async fn beat(&mut self, message: &pb::HeartbeatMessage) -> pb::HeartbeatRespMessage {
        let payload = self.ask(NodeCommand::Heartbeat, message.encode_to_vec()).await;
        pb::HeartbeatRespMessage::decode(payload).unwrap()
    }

    /// Says something that is refused: there is no answer, and the next message has one.
    pub(crate) async fn say_in_vain(&mut self, command: NodeCommand, payload: impl Into<Bytes>) {
        self.say(command.into(), 0, payload).await;
        self.fetch().await;
    }
}

/// A node, with its connection.
pub(crate) struct Node {
    pub(crate) id: &'static str,
    pub(crate) role: NodeRole,
    pub(crate) port: u32,
    /// As it was told; none yet.
    pub(crate) rank: u32,
    pub(crate) line: Client,
}

impl Node {
    fn new(cluster: &Cluster, role: NodeRole, id: &'static str, port: u32) -> Self {
        Self { id, role, port, rank: NO_RANK, line: cluster.connect() }
    }

    pub(crate) fn server(cluster: &Cluster, id: &'static str, port: u32) -> Self {
        Self::new(cluster, NodeRole::Server, id, port)
    }

    pub(crate) fn worker(cluster: &Cluster, id: &'static str, port: u32) -> Self {
        Self::new(cluster, NodeRole::Worker, id, port)
    }

    /// What it says of itself.
    pub(crate) fn registration(&self) -> pb::RegisterMessage {
        pb::RegisterMessage {
            ip: "192.0.2.2".into(),
            port: self.port,
            node_id: self.id.into(),
            role: self.role.into(),
            ..Default::default()
        }
    }

    /// Registers; its rank.
    pub(crate) async fn register(&mut self) -> u32 {
        let message = self.registration();
        self.register_as(&message).await
    }

    pub(crate) async fn register_as(&mut self, message: &pb::RegisterMessage) -> u32 {
        let meta = self.line.say(NodeCommand::Register.into(), self.rank, message.encode_to_vec()).await;
        let answer = pb::RegisterRespMessage::decode(self.line.answer(&meta).await).unwrap();
        assert_eq!(answer.node_id, message.node_id);
        self.rank = answer.rank_id;
        self.rank
    }

    /// What it is told with a heartbeat.
    pub(crate) async fn beat(&mut self) -> pb::HeartbeatRespMessage {
        let message = pb::HeartbeatMessage { node_id: self.id.into(), ..Default::default() };
        self.line.beat(&message).await
    }

    /// The name of the state that it is told.
    pub(crate) async fn state(&mut self) -> &'static str {
        self.beat().await.cluster_state().as_str_name()
    }

    pub(crate) fn done(&self) -> Vec<u8> {
        pb::ScaleOutDoneMessage { node_id: self.id.into() }.encode_to_vec()
    }

    pub(crate) fn event(&self, event: u32) -> Vec<u8> {
        pb::EventMessage { event, node_id: self.id.into() }.encode_to_vec()
    }

    /// Reports something, which is noted.
    pub(crate) async fn report(&mut self, command: NodeCommand, payload: Vec<u8>) {
        let noted = self.line.ask(command, payload.clone()).await;
        assert_eq!(noted, payload, "what was noted is said back");
    }

    pub(crate) async fn finish(&mut self) {
        self.report(NodeCommand::Finish, self.id.into()).await;
    }
}

/// A cluster of one worker and so many servers, `srv-0` and so on, who all know of each other.
pub(crate) async fn formed(servers: &[&'static str]) -> (Cluster, Node, Vec<Node>) {
    let cluster = Cluster::of(1, u32::try_from(servers.len()).unwrap()).await;
    let mut worker = Node::worker(&cluster, "wrk", 4000);
    worker.register().await;
    let mut nodes = Vec::new();
    for (port, id) in (5000..).zip(servers) {
        let mut server = Node::server(&cluster, id, port);
        server.register().await;
        nodes.push(server);
    }
    cluster.tell().await;
    (cluster, worker, nodes)
}
