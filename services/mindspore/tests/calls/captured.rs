//! What a server of 2.0.0 was told on its own port, and that ours tells it the same, byte for byte. It answers what it answered.

use std::sync::Arc;

use bytes::BytesMut;
use parking_lot::Mutex;
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::task::JoinSet;
use tripod_mindspore::wire::Frame as _;
use tripod_mindspore::wire::ps::Frame;
use tripod_proto::mindspore::ps_core::{MessageMeta, NodeCommand, SendMetadataMessage};
use tripod_state::mindspore::Answer;
use tripod_state::mindspore::cluster::{Request, Scaling};

use crate::capture::Capture;
use crate::played::Played;
use crate::support::Cluster;

/// Where the nodes of the capture were.
const IP: &str = "192.0.2.2";
const SERVER_PORT: u32 = 38_069;
const WORKER_PORT: u32 = 38_285;
const NEWCOMER_PORT: u32 = 40_000;

/// The frame of a capture that asks a node for that, or answers it. Commands are named as upstream names them.
fn captured(capture: &Capture, command: NodeCommand, way: &str) -> Frame {
    capture.frame(&format!("{} {way} (connection to node)", command.as_str_name()))
}

/// Nodes in an order of their own, which no release relies on: upstream has that of a hash.
fn sorted(frame: &Frame) -> SendMetadataMessage {
    let mut told = SendMetadataMessage::decode(&frame.payload[..]).unwrap();
    told.servers_meta.sort_by(|one, other| one.node_id.cmp(&other.node_id));
    told
}

/// The server of the capture: it keeps what it is told.
async fn converse(mut line: DuplexStream, capture: Arc<Capture>, told: Arc<Mutex<Vec<Frame>>>) {
    let mut buffer = BytesMut::new();
    loop {
        while let Some(frame) = Frame::take(&mut buffer).unwrap() {
            let command = NodeCommand::try_from(frame.meta.cmd).unwrap();
            let mut answer = captured(&capture, command, "response");
            answer.meta.request_id = frame.meta.request_id;
            if command == NodeCommand::SendMetadata {
                answer.payload = frame.payload.clone();
            }
            told.lock().push(frame);
            line.write_all(&answer.encode()).await.unwrap();
        }
        if line.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
            return;
        }
    }
}

/// A server becomes two and one again, hears of an event and finishes.
async fn live(cluster: &Cluster) {
    cluster.settled().await;
    cluster.event("wrk-a", 3).await;
    cluster.settled().await;
    let answer = cluster.ask(Request::ScaleOut { workers: 0, servers: 1 }).await;
    assert!(matches!(answer, Answer::Scaling { .. }), "{answer:?}");
    cluster.settled().await;
    for (node, port) in [("srv-a", SERVER_PORT), ("srv-b", NEWCOMER_PORT), ("wrk-a", WORKER_PORT)] {
        cluster.register_at(node, IP, port).await;
    }
    cluster.settled().await;
    for node in ["srv-a", "srv-b", "wrk-a"] {
        cluster.done(node, Scaling::Out).await;
    }
    cluster.settled().await;
    let answer = cluster.ask(Request::ScaleIn { nodes: vec!["srv-b".to_owned()] }).await;
    assert!(matches!(answer, Answer::Scaling { .. }), "{answer:?}");
    cluster.settled().await;
    for (node, port) in [("srv-a", SERVER_PORT), ("wrk-a", WORKER_PORT)] {
        cluster.register_at(node, IP, port).await;
    }
    cluster.settled().await;
    for node in ["srv-a", "srv-b", "wrk-a"] {
        cluster.done(node, Scaling::In).await;
    }
    cluster.settled().await;
    for node in ["srv-b", "wrk-a", "srv-a"] {
        cluster.finish(node).await;
    }
    cluster.settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_of_2_0_0_is_told_what_its_own_scheduler_told_it() {
    let cluster = Cluster::of(1, 1).await;
    let capture = Arc::new(Capture::of("ps_ext_scale_out_in.jsonl"));
    let told = Arc::<Mutex<Vec<Frame>>>::default();
    let mut arrivals = cluster.lines.listen(&format!("{IP}:{SERVER_PORT}"));
    let (of_server, kept) = (Arc::clone(&capture), Arc::clone(&told));
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut connections = JoinSet::new();
        while let Some(line) = arrivals.next().await {
            connections.spawn(converse(line, Arc::clone(&of_server), Arc::clone(&kept)));
        }
    });
    let _others =
        [WORKER_PORT, NEWCOMER_PORT].map(|port| Played::at(&format!("{IP}:{port}"), &cluster.lines));
    cluster.register_at("wrk-a", IP, WORKER_PORT).await;
    cluster.register_at("srv-a", IP, SERVER_PORT).await;
    live(&cluster).await;

    let told = std::mem::take(&mut *told.lock());
    let commands: Vec<NodeCommand> =
        told.iter().map(|frame| NodeCommand::try_from(frame.meta.cmd).unwrap()).collect();
    let expected = [
        NodeCommand::SendMetadata,
        NodeCommand::SendEvent,
        NodeCommand::ScaleOut,
        NodeCommand::SendMetadata,
        NodeCommand::ScaleOutDone,
        NodeCommand::ScaleIn,
        NodeCommand::SendMetadata,
        NodeCommand::ScaleInDone,
        NodeCommand::Finish,
    ];
    assert_eq!(commands, expected);
    for (place, command) in commands.into_iter().enumerate() {
        let asked = captured(&capture, command, "request");
        let frame = &told[place];
        let meta = MessageMeta { request_id: asked.meta.request_id, ..frame.meta.clone() };
        assert_eq!((frame.format, &meta), (asked.format, &asked.meta), "{command:?}");
        match command {
            // That of before the first scaling was captured.
            NodeCommand::SendMetadata if place == 0 => assert_eq!(sorted(frame), sorted(&asked)),
            NodeCommand::SendMetadata => {}
            _ => assert_eq!(frame.payload, asked.payload, "{command:?}"),
        }
    }
}
