//! What clients have an agent hold is bounded, and whoever reads gets all that they asked for.

use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::Request;
use http_body_util::{BodyExt as _, Collected, Full};
use prost::Message as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::Code;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::{Service as _, ServiceExt as _};
use tripod_agent::{AgentConfig, MemoryLimits};
use tripod_proto::metadata;
use tripod_proto::xla::coordination as n;

use crate::fake::{Cluster, Node};
use crate::support::{Served, config, soon, until};

const MIB: u64 = 1 << 20;
const CALLS: usize = 100;
/// What one message of a greedy client has.
const MESSAGE_BYTES: usize = 256 << 10;

fn served(node: &Node, all: u64, one_connection: u64) -> Served {
    Served::start(AgentConfig { memory: MemoryLimits { all, one_connection }, ..config(&[node]) })
}

/// Asks for a value with a large message, and reads nothing of the answer before it may. Whoever reads has to read all
/// answers at the same time: they share the connection's window.
async fn ask(mut channel: Channel, mut may_read: watch::Receiver<bool>) -> Collected<Bytes> {
    let mut message = BytesMut::new();
    message.put_u8(0);
    message.put_u32(u32::try_from(MESSAGE_BYTES).expect("small"));
    message.put_bytes(0, MESSAGE_BYTES);
    let request = Request::post("http://agent/xla.coordination.CoordinationService/GetKeyValue")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(Full::new(message.freeze())))
        .expect("a request");
    let answer = channel.ready().await.expect("a connection").call(request).await.expect("an answer");
    may_read.wait_for(|may| *may).await.expect("told");
    answer.into_body().collect().await.expect("all of it")
}

#[tokio::test(start_paused = true)]
async fn f11_a_client_that_asks_for_much_and_reads_nothing_has_its_share_and_others_are_served() {
    let cluster = Cluster::new();
    let value = Bytes::from(vec![b'v'; 1 << 20]);
    let kv = Some(n::KeyValueEntry { key: "large".into(), value: value.clone() });
    let answer = n::GetKeyValueResponse { kv }.encode_to_vec();
    cluster.change(|state| (state.open, state.value) = (true, answer.clone().into()));
    let node = Node::start(&cluster, 1);
    let served = served(&node, 64 * MIB, 8 * MIB);
    let channel = served.channel().await;
    let (read, may_read) = watch::channel(false);
    let mut asked: JoinSet<_> = (0..CALLS).map(|_| ask(channel.clone(), may_read.clone())).collect();
    until("answers up to the limit", || served.status().held_bytes >= 8 * MIB).await;
    // The clock goes on when nothing else can happen any more.
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Requests up to the limit and what lies unread of others, answers up to the limit and one more, and all calls.
    let held = served.status().held_bytes;
    assert!(held <= (8 + 16 + 8 + 1 + 3) * MIB, "{held} bytes are held");

    let mut witness = served.client().await;
    soon(witness.insert_key_value(n::InsertKeyValueRequest::default())).await.expect("taken");
    let got = soon(witness.get_key_value(n::GetKeyValueRequest::default())).await.expect("read");
    assert_eq!(got.into_inner().kv.expect("an entry").value, value);

    read.send_replace(true);
    let mut whole = 0;
    while let Some(body) = soon(asked.join_next()).await {
        let body = body.expect("no panic");
        assert_eq!(body.trailers().expect("at the end")["grpc-status"], "0");
        assert!(body.to_bytes()[5..] == answer, "another answer");
        whole += 1;
    }
    assert_eq!(whole, CALLS);
    let attempts = cluster.attempts("GetKeyValue").len();
    assert!(attempts <= 2 * CALLS + 1, "{attempts}: each is asked for once more at most");
    drop((channel, witness));
    until("all that was held is given back", || served.status().held_bytes == 0).await;
}

#[tokio::test(start_paused = true)]
async fn f11_calls_without_room_are_told_which_limit_it_is_and_what_must_pass_passes() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let served = served(&node, 2 * MIB, MIB);
    let greedy = served.client().await;
    let mut gets: JoinSet<_> = (0..CALLS)
        .map(|_| {
            let mut client = greedy.clone();
            async move { client.get_key_value(n::GetKeyValueRequest::default()).await }
        })
        .collect();
    let refused = soon(gets.join_next()).await.expect("a call").expect("no panic").expect_err("no room");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    for word in ["T2209 connection-memory-full", "holds 1 MiB", "--connection-memory-mib"] {
        assert!(refused.message().contains(word), "{word} is not in: {}", refused.message());
    }
    assert_eq!(refused.metadata().get(metadata::OUTAGE), None, "that word is for agents");

    // A poll hears nothing that would end its client, and a heartbeat is taken.
    let mut client = greedy.clone();
    let poll = soon(client.poll_for_error(n::PollForErrorRequest::default())).await.expect_err("no room");
    assert!(poll.code() == Code::Cancelled && poll.message().contains("T2209"), "{poll:?}");
    soon(client.heartbeat(n::HeartbeatRequest::default())).await.expect("alive");
    let mut witness = served.client().await;
    soon(witness.insert_key_value(n::InsertKeyValueRequest::default())).await.expect("taken");
    gets.shutdown().await;
    drop((greedy, client, witness));
    until("all that was held is given back", || served.status().held_bytes == 0).await;
}
