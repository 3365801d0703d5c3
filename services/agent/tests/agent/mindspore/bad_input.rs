//! What no node of MindSpore says, and clients that would have all of an agent's memory.

use bytes::Bytes;
use tripod_agent::{AgentConfig, MemoryLimits};
use tripod_lines::Log;
use tripod_mindspore_wire::rpc0::{self, BODY_BYTES_MAX, FIELD_BYTES_MAX};

use super::Setting;
use super::nodes::Script;
use crate::support::until;

const MIB: u32 = 1 << 20;

fn header(name: u32, to: u32, from: u32, body: u32) -> Vec<u8> {
    [&b"RPC0"[..], &name.to_be_bytes(), &to.to_be_bytes(), &from.to_be_bytes(), &body.to_be_bytes()].concat()
}

#[tokio::test(start_paused = true)]
async fn whatever_is_no_frame_ends_its_connection_and_reaches_no_node() {
    let log = Log::listen();
    let script = Script::default();
    let setting = Setting::new(script.clone()).await;
    let mut good = setting.connect();
    good.register("0").await;
    for bad in [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"RPC1\0\0\0\0".to_vec(),
        header(FIELD_BYTES_MAX + 1, 1, 1, 1),
        header(1, u32::MAX, 1, 1),
        header(1, 1, 1, BODY_BYTES_MAX + 1),
        // A frame of the parameter server whose meta cannot be read.
        [&[1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0][..], &[0x80]].concat(),
    ] {
        let mut client = setting.connect();
        client.send(&bad).await;
        assert_eq!(client.hear::<rpc0::Frame>().await, None, "{bad:02x?}");
        let words = if bad.starts_with(b"GET") { "T6402 message-unknown: " } else { "T6401 frame-broken: " };
        let lines = log.lines();
        assert!(lines.iter().any(|line| line.contains(words)), "{bad:02x?}: {lines:?}");
    }
    assert_eq!(script.marks().len(), 1);
    assert_eq!(good.beat("0").await.0, "3");
    setting.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_node_cannot_read_ends_the_connection_of_its_client_and_is_sent_once() {
    let log = Log::listen();
    let script = Script::default();
    let setting = Setting::new(script.clone()).await;
    let mut client = setting.connect();
    client.say("0", Bytes::from_static(b"\xff\xff")).await;
    assert_eq!(client.hear::<rpc0::Frame>().await, None);
    let lines = log.lines();
    for words in ["T6401 frame-broken: ", "T6403 message-refused: the cluster refuses what a client says"] {
        assert!(lines.iter().any(|line| line.contains(words)), "{words}: {lines:?}");
    }
    assert_eq!(script.marks().len(), 1);
    assert_eq!(setting.connect().register("0").await.0, "3");
    setting.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_claims_much_has_its_share_and_others_are_served() {
    let limits = MemoryLimits { all: 4 * u64::from(MIB), one_connection: u64::from(MIB) };
    let setting = Setting::with(Script::default(), |config| AgentConfig { memory: limits, ..config }).await;
    let mut witness = setting.connect();
    witness.register("0").await;
    let mut greedy = Vec::new();
    for _ in 0..32 {
        let mut client = setting.connect();
        // The rest of it never comes.
        client.send(&header(1, 1, 1, 900 << 10)).await;
        client.send(b"6@@").await;
        client.send(&vec![b'x'; 800 << 10]).await;
        greedy.push(client);
    }
    until("there is no more room", || setting.served.status().held_bytes >= 3 * u64::from(MIB)).await;
    let mut beyond = setting.connect();
    beyond.send(&header(1, 1, 1, 2 * MIB)).await;
    beyond.send(b"6@@").await;
    beyond.send(&vec![b'x'; 2 << 20]).await;
    assert_eq!(beyond.hear::<rpc0::Frame>().await, None, "it is more than a connection may hold");
    assert!(setting.served.status().held_bytes <= 5 * u64::from(MIB));
    assert_eq!(witness.beat("0").await.0, "3");
    drop((greedy, witness));
    until("all that was held is given back", || setting.served.status().held_bytes == 0).await;
    setting.end().await;
}
