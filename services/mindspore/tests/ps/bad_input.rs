//! What no node sends, and what none may. It ends its connection, is refused, or has no answer; the log says why, and nothing
//! is changed.

use std::fmt::Debug;

use prost::Message as _;
use tripod_lines::Log;
use tripod_mindspore::wire::ps::{MESSAGE_BYTES_MAX, META_BYTES_MAX};
use tripod_proto::mindspore::ps_core::{
    MessageMeta, NodeCommand, NodeRole, RegisterMessage, RegisterRespMessage,
};

use crate::nodes::{NO_RANK, Node, formed};
use crate::operator::Operator;
use crate::support::Cluster;

const BROKEN: &str = "T6401 frame-broken: ";
const UNKNOWN: &str = "T6402 message-unknown: ";
const REFUSED: &str = "T6403 message-refused: ";

fn header(format: u32, meta: u32, message: u64) -> Vec<u8> {
    [&format.to_le_bytes()[..], &meta.to_le_bytes(), &message.to_le_bytes()].concat()
}

fn frame(command: i32, payload: &[u8]) -> Vec<u8> {
    let meta = MessageMeta { cmd: command, request_id: 1, ..Default::default() }.encode_to_vec();
    let bytes = header(1, u32::try_from(meta.len()).unwrap(), (meta.len() + payload.len()) as u64);
    [bytes, meta, payload.to_vec()].concat()
}

/// The log has one line since it was looked at last, which says that.
async fn told(log: &Log, words: &str, of: impl Debug) {
    let lines = tripod_wait::until(format!("the log says {words} of {of:02x?}"), || {
        Some(log.lines()).filter(|lines| !lines.is_empty())
    });
    let lines = lines.await;
    assert!(lines.len() == 1 && lines[0].contains(words), "{of:02x?}: {lines:?}");
}

/// All that nodes, operators and whoever leads see of the job's clusters.
fn seen(cluster: &Cluster) -> String {
    let (state, scope) = (cluster.backend.state(), cluster.scope);
    let nodes = (state.cluster(scope), state.cluster_nodes(scope), state.cluster_orders(scope.job));
    let others = (state.cluster_events(scope, 0), state.cluster_switch(scope.job), state.topology(scope));
    format!("{nodes:?} {others:?}")
}

#[tokio::test(start_paused = true)]
async fn whatever_is_no_frame_or_no_command_of_a_node_ends_its_connection_and_no_other() {
    let log = Log::listen();
    let (cluster, mut worker, _servers) = formed(&["srv-0"]).await;
    let broken = [
        header(1, 4, 1 << 32),
        header(1, 4, u64::MAX),
        header(1, 4, MESSAGE_BYTES_MAX + 1),
        header(0, META_BYTES_MAX + 1, 1 << 20),
        header(1, 5, 4),
        // A format that nobody has, after a frame in order.
        [frame(0, b""), header(3, 4, 4)].concat(),
        [header(1, 1, 1), vec![0x80]].concat(),
        frame(NodeCommand::Register.into(), b"\xff\xff"),
        frame(NodeCommand::Heartbeat.into(), b"\xff\xff"),
        frame(NodeCommand::ScaleOutDone.into(), b"\xff\xff"),
        frame(NodeCommand::ScaleInDone.into(), b"\xff\xff"),
        frame(NodeCommand::SendEvent.into(), b"\xff\xff"),
    ];
    // What goes between nodes, or from a scheduler to them, and what no release has.
    let unknown = [3, 6, 7, 8, 9, 13, 14, 24, 26, -1, i32::MAX].map(|command| frame(command, b""));
    let bad = broken.map(|bytes| (bytes, BROKEN)).into_iter().chain(unknown.map(|bytes| (bytes, UNKNOWN)));
    let before = cluster.backend.state().digest();
    drop(log.lines());
    for (bytes, code) in bad {
        let mut client = cluster.connect();
        client.send(&bytes).await;
        assert_eq!(client.hear().await, None, "{bytes:02x?}");
        told(&log, code, &bytes).await;
    }
    assert_eq!(cluster.backend.state().digest(), before, "of none of them anything is in the state");
    assert_eq!(worker.state().await, "CLUSTER_READY");
    assert_eq!(cluster.view().present, 2);
}

#[tokio::test(start_paused = true)]
async fn a_registration_that_cannot_be_taken_is_answered_so_and_logged_and_changes_nothing() {
    let log = Log::listen();
    let (cluster, mut worker, servers) = formed(&["srv-0"]).await;
    let known = servers[0].registration();
    let stranger = RegisterMessage { node_id: "x".into(), port: 6000, ..known.clone() };
    let before = seen(&cluster);
    drop(log.lines());
    for (message, words) in [
        (stranger.clone(), REFUSED),
        (RegisterMessage { node_id: String::new(), ..stranger.clone() }, REFUSED),
        (RegisterMessage { node_id: "x".repeat(101), ..stranger.clone() }, REFUSED),
        (RegisterMessage { node_id: "\u{1b}[2J\n".into(), ..stranger.clone() }, REFUSED),
        (RegisterMessage { role: NodeRole::Scheduler.into(), ..stranger.clone() }, REFUSED),
        (RegisterMessage { role: 9, ..stranger.clone() }, REFUSED),
        // A known id, with what that node is not.
        (RegisterMessage { role: NodeRole::Worker.into(), ..known.clone() }, REFUSED),
        // Places where nobody can be told anything.
        (RegisterMessage { ip: String::new(), ..known.clone() }, REFUSED),
        (RegisterMessage { port: 0, ..known.clone() }, REFUSED),
        (RegisterMessage { port: 65_536, ..known.clone() }, REFUSED),
        (RegisterMessage { ip: "224.0.0.1".into(), ..known.clone() }, "T6305 dial-refused: "),
    ] {
        let mut client = cluster.connect();
        let meta = client.say(NodeCommand::Register.into(), NO_RANK, message.encode_to_vec()).await;
        let answer = RegisterRespMessage::decode(client.answer(&meta).await).unwrap();
        assert_eq!((answer.node_id, answer.rank_id), (message.node_id.clone(), NO_RANK));
        told(&log, words, &message).await;
        assert_eq!(seen(&cluster), before, "{message:?}");
        client.fetch().await;
    }
    assert_eq!(worker.state().await, "CLUSTER_READY");
}

#[tokio::test(start_paused = true)]
async fn what_is_said_for_a_node_that_nobody_knows_has_no_answer_and_is_logged_and_changes_nothing() {
    let log = Log::listen();
    let (cluster, mut worker, mut servers) = formed(&["srv-0"]).await;
    let stranger = Node::server(&cluster, "nobody", 6000);
    let mut client = cluster.connect();
    let before = seen(&cluster);
    drop(log.lines());
    for (command, payload) in [
        (NodeCommand::Finish, b"nobody".to_vec()),
        (NodeCommand::Finish, Vec::new()),
        (NodeCommand::Finish, b"\xff\xfe".to_vec()),
        (NodeCommand::SendEvent, stranger.event(1)),
        (NodeCommand::SendEvent, Vec::new()),
        (NodeCommand::ScaleOutDone, stranger.done()),
        (NodeCommand::ScaleInDone, stranger.done()),
    ] {
        client.say_in_vain(command, payload.clone()).await;
        told(&log, REFUSED, (command, payload)).await;
        assert_eq!(seen(&cluster), before, "{command:?}");
    }
    // Whoever has not registered may beat: that is no mistake.
    assert_eq!(client.beat(&Default::default()).await, Default::default());
    assert_eq!(log.lines(), [""; 0]);
    for words in [Some(UNKNOWN), None] {
        assert_eq!(client.ask(NodeCommand::QueryHostNames, "anything").await, "");
        match words {
            Some(words) => told(&log, words, "what is not done").await,
            None => assert_eq!(log.lines(), [""; 0], "once for a connection"),
        }
    }
    assert_eq!(seen(&cluster), before);
    // The process that was there before the one that is there now.
    let mut next = Node::server(&cluster, "srv-0", 5100);
    assert_eq!(next.register().await, 0);
    cluster.tell().await;
    let before = seen(&cluster);
    assert_eq!(servers[0].state().await, "NODE_TIMEOUT");
    told(&log, REFUSED, "a heartbeat").await;
    let finish: &[u8] = b"srv-0";
    servers[0].line.say_in_vain(NodeCommand::Finish, finish).await;
    told(&log, REFUSED, "its end").await;
    assert_eq!((seen(&cluster), worker.state().await), (before, "CLUSTER_READY"));
}

#[tokio::test(start_paused = true)]
async fn what_an_operator_asks_in_vain_is_answered_and_logged_and_changes_nothing() {
    let log = Log::listen();
    let (cluster, _worker, _servers) = formed(&["srv-0"]).await;
    let mut operator = Operator::on(cluster.dial());
    let before = seen(&cluster);
    drop(log.lines());
    for (path, body, status, words) in [
        ("/", "", 404, UNKNOWN),
        ("/scaleout", "{", 400, REFUSED),
        ("/scaleout", r#"{"worker_num": 1, "server_num": 0}"#, 400, REFUSED),
        ("/scalein", r#"{"node_ids": ["nobody"]}"#, 400, REFUSED),
        ("/scaleoutRollback", "", 400, REFUSED),
        ("/newInstance", "[", 400, REFUSED),
    ] {
        let (told_status, text) = operator.post(path, body).await;
        assert_eq!(told_status, status, "{path}: {text}");
        told(&log, words, path).await;
        assert_eq!(seen(&cluster), before, "{path}");
    }
    let before = cluster.backend.state().digest();
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(64 << 10));
    for bytes in [&b"GET \x01\x02\r\n\r\n"[..], b"GET / HTTP/9.9\r\n\r\n", long.as_bytes()] {
        let mut operator = Operator::on(cluster.dial());
        operator.send(bytes).await;
        while let Some((status, _)) = operator.hear().await {
            assert!((400..500).contains(&status) || status == 505, "{status}");
        }
        told(&log, BROKEN, &bytes[..bytes.len().min(16)]).await;
    }
    assert_eq!(cluster.backend.state().digest(), before);
}

#[tokio::test(start_paused = true)]
async fn a_registration_is_understood_in_any_pieces() {
    let (cluster, _worker, servers) = formed(&["srv-0"]).await;
    let bytes = frame(NodeCommand::Register.into(), &servers[0].registration().encode_to_vec());
    let expected = servers[0].registration().node_id;
    for split in 0..=bytes.len() {
        let mut client = cluster.connect();
        client.send(&bytes[..split]).await;
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        client.send(&bytes[split..]).await;
        let answer =
            client.hear().await.unwrap_or_else(|| panic!("no answer after a piece of {split} bytes"));
        assert!(answer.payload.ends_with(expected.as_bytes()), "{answer:?}");
    }
    assert_eq!(cluster.view().present, 2, "one node, however often it says so");
}

#[tokio::test(start_paused = true)]
async fn a_frame_without_anything_is_passed_over_and_half_of_one_does_not_stay() {
    let log = Log::listen();
    let (cluster, mut worker, _servers) = formed(&["srv-0"]).await;
    worker.line.send(&header(0, 0, 0)).await;
    assert_eq!(worker.state().await, "CLUSTER_READY");
    let mut stuck = Node::server(&cluster, "srv-0", 5000);
    let bytes = frame(NodeCommand::Register.into(), &stuck.registration().encode_to_vec());
    stuck.line.send(&bytes[..bytes.len() - 1]).await;
    drop(log.lines());
    assert_eq!(stuck.line.hear().await, None, "within 30 s");
    told(&log, "T2210 left-unfinished: ", "half of a registration").await;
    assert_eq!(worker.state().await, "CLUSTER_READY");
}
