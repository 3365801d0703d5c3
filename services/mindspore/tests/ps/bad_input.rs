//! What no node sends. It ends its connection, or has no answer; and changes nothing.

use prost::Message as _;
use tripod_mindspore::wire::ps::{MESSAGE_BYTES_MAX, META_BYTES_MAX};
use tripod_proto::mindspore::ps_core::{MessageMeta, NodeCommand};

use crate::nodes::{Node, formed};

fn header(format: u32, meta: u32, message: u64) -> Vec<u8> {
    [&format.to_le_bytes()[..], &meta.to_le_bytes(), &message.to_le_bytes()].concat()
}

fn frame(command: i32, payload: &[u8]) -> Vec<u8> {
    let meta = MessageMeta { cmd: command, request_id: 1, ..Default::default() }.encode_to_vec();
    let bytes = header(1, u32::try_from(meta.len()).unwrap(), (meta.len() + payload.len()) as u64);
    [bytes, meta, payload.to_vec()].concat()
}

#[tokio::test(start_paused = true)]
async fn whatever_is_no_frame_or_no_command_of_a_node_ends_its_connection_and_no_other() {
    let (cluster, mut worker, _servers) = formed(&["srv-0"]).await;
    let mut bad = vec![
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
        frame(NodeCommand::SendEvent.into(), b"\xff\xff"),
    ];
    // What goes between nodes, or from a scheduler to them, and what no release has.
    for command in [3, 6, 7, 8, 9, 13, 14, 24, 26, -1, i32::MAX] {
        bad.push(frame(command, b""));
    }
    for bytes in bad {
        let mut client = cluster.connect();
        client.send(&bytes).await;
        assert_eq!(client.hear().await, None, "{bytes:02x?}");
    }
    assert_eq!(worker.state().await, "CLUSTER_READY");
    assert_eq!(cluster.view().present, 2);
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
    let (cluster, mut worker, _servers) = formed(&["srv-0"]).await;
    worker.line.send(&header(0, 0, 0)).await;
    assert_eq!(worker.state().await, "CLUSTER_READY");
    let mut stuck = Node::server(&cluster, "srv-0", 5000);
    let bytes = frame(NodeCommand::Register.into(), &stuck.registration().encode_to_vec());
    stuck.line.send(&bytes[..bytes.len() - 1]).await;
    assert_eq!(stuck.line.hear().await, None, "within 30 s");
    assert_eq!(worker.state().await, "CLUSTER_READY");
}
