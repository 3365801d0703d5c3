//! What an agent says with a frame, and the one answer that it always has.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use tripod_gateway::Mishap;
use tripod_mindspore::wire::rpc0::Frame;
use tripod_mindspore::wire::{Mark, Stamp, Word};
use tripod_proto::mindspore::topology::{HeartbeatMessage, MetadataMessage};
use tripod_state::Command;
use tripod_state::ids::SessionId;
use tripod_state::mindspore::{self, topology};
use tripod_state::session::{self, Owner};

use crate::support::{Client, Cluster, before, end_of_sessions, of_2_0};

const LOOK: Mark = Mark { stamp: None };
/// Of a session that nobody has opened.
const STRANGE: Mark = Mark { stamp: Some(Stamp { session: 7, sequence: 1, acknowledged_below: 1 }) };

async fn say(agent: &mut Client, name: &str, body: Vec<u8>, mark: Mark) {
    let part = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    let frame = Frame { name: part(name), to: part("@node:8400"), from: part("@"), body: body.into() };
    agent.send(&frame.marked(mark).encode()).await;
}

/// The answer to a marked frame.
async fn ask(agent: &mut Client, name: &str, body: Vec<u8>, mark: Mark) -> Frame {
    say(agent, name, body, mark).await;
    agent.hear().await.expect("a marked frame has an answer")
}

fn entry(name: &str) -> Vec<u8> {
    MetadataMessage { name: name.into(), value: Bytes::from_static(b"1") }.encode_to_vec()
}

#[tokio::test(start_paused = true)]
async fn a_marked_frame_has_an_answer_where_the_protocol_has_none() {
    let cluster = Cluster::of(1).await;
    let mut agent = cluster.connect();
    let beat = HeartbeatMessage { node_id: "0".into() }.encode_to_vec();
    assert_eq!(ask(&mut agent, "2", beat.clone(), LOOK).await.word(), Some(Word::Silent), "it is unknown");
    assert!(cluster.connect().register(&of_2_0("0")).await.success);
    let answer = ask(&mut agent, "2", beat, LOOK).await;
    assert_eq!((answer.word(), &answer.name[..]), (None, &b"3"[..]));
    assert_eq!(ask(&mut agent, "6", entry("a"), LOOK).await.word(), Some(Word::Silent));
    assert_eq!(agent.read("a").await.1, "1", "it is written when that is said");
    assert_eq!(ask(&mut agent, "a_user's", Vec::new(), LOOK).await.word(), Some(Word::Silent));
}

#[tokio::test(start_paused = true)]
async fn a_stamp_of_a_session_that_is_not_there_changes_nothing_and_is_told() {
    let cluster = Cluster::of(1).await;
    assert!(cluster.connect().register(&of_2_0("0")).await.success);
    let mut agent = cluster.connect();
    assert_eq!(ask(&mut agent, "6", entry("a"), STRANGE).await.word(), Some(Word::SessionGone));
    assert_eq!(agent.read("a").await.1, "", "it was not executed");
    let registration = of_2_0("1").encode_to_vec();
    assert_eq!(ask(&mut agent, "0", registration, STRANGE).await.word(), Some(Word::SessionGone));
    assert_eq!(cluster.view().registered, 1);
}

/// An agent that heard of its session alone would take the write for one that was not executed, and have it executed again.
#[tokio::test(start_paused = true)]
async fn a_stamp_whose_session_has_ended_while_its_write_was_in_doubt_is_not_said_to_be_unused() {
    let cluster = Cluster::of(1).await;
    let backend = Arc::downgrade(&cluster.backend);
    let own = SessionId::of_client(9);
    let open = session::Command::OpenFor { id: own, owner: Owner::Client(None) };
    before(&backend, [Command::Session(open)]);
    let scope = cluster.scope;
    let mut attempts = 0;
    cluster.backend.set_mishaps(move |envelope| {
        if envelope.stamp.is_none_or(|stamp| stamp.session != own) {
            return Mishap::Success;
        }
        attempts += 1;
        if attempts == 1 {
            return Mishap::UnknownButApplied;
        }
        // Somebody else has written since.
        let request = topology::Request::Write { name: "a".into(), value: Bytes::from_static(b"2") };
        let write = Command::Mindspore(mindspore::Command::Topology { scope, request });
        before(&backend, [end_of_sessions(), write]);
        Mishap::Success
    });
    let mut agent = cluster.connect();
    let stamp = Stamp { session: own.0, sequence: 1, acknowledged_below: 1 };
    say(&mut agent, "6", entry("a"), Mark { stamp: Some(stamp) }).await;
    assert_eq!(agent.hear().await, None, "it asks again, and knows that it has asked before");
    assert_eq!(cluster.connect().read("a").await.1, "2");
}

#[tokio::test(start_paused = true)]
async fn a_message_for_which_a_client_is_left_is_told_to_its_agent() {
    let cluster = Cluster::of(1).await;
    let mut agent = cluster.connect();
    assert_eq!(ask(&mut agent, "0", vec![0xff, 0xff], LOOK).await.word(), Some(Word::Refused));
    assert_eq!(ask(&mut agent, "6", vec![0xff, 0xff], STRANGE).await.word(), Some(Word::Refused));
}
