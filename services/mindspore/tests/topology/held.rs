//! Messages that come while nobody leads, and while the port stops.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use tokio::time::{Instant, sleep, timeout};
use tripod_gateway::Mishap;
use tripod_proto::mindspore::topology as pb;
use tripod_state::mindspore::topology::TopoState;
use tripod_state::mindspore::{self, topology};
use tripod_state::{Command, Envelope};

use crate::support::{Cluster, before, end_of_sessions, of_2_0};

/// Beyond the patience of one call of the gateway.
const LONG: Duration = Duration::from_secs(300);

#[tokio::test(start_paused = true)]
async fn a_message_is_held_while_nobody_leads_and_answered_when_somebody_does() {
    let cluster = Cluster::of(1).await;
    let (mut one, mut metadata) = (cluster.connect(), cluster.connect());
    cluster.backend.depose();
    assert!(timeout(LONG, one.register(&of_2_0("0"))).await.is_err(), "it waits");
    metadata.write("a", "1").await;
    cluster.backend.elect();
    let answer = one.hear().await.expect("an answer");
    assert_eq!((&answer.name[..], &answer.body[..]), (&b"3"[..], &[8, 1, 24, 1][..]));
    let (valid, value) = metadata.read("a").await;
    assert_eq!((valid.as_str(), &value[..]), ("10", &b"1"[..]), "in their order");
}

#[tokio::test(start_paused = true)]
async fn a_port_that_stops_answers_what_it_can_and_ends_connections_between_messages() {
    let cluster = Cluster::of(2).await;
    let (mut idle, mut waiting) = (cluster.connect(), cluster.connect());
    assert!(idle.register(&of_2_0("0")).await.success);
    cluster.backend.depose();
    assert!(timeout(LONG, waiting.register(&of_2_0("1"))).await.is_err());
    let mut tasks = cluster.stop();
    assert_eq!(idle.hear().await, None);
    assert_eq!(waiting.hear().await, None, "nobody knows what becomes of it");
    tasks.join_next().await.unwrap().unwrap();
}

/// Whether it writes that value.
fn writes(envelope: &Envelope, wanted: &str) -> bool {
    let command = match &envelope.command {
        Command::Retried(command) => &**command,
        command => command,
    };
    let Command::Mindspore(mindspore::Command::Topology { request, .. }) = command else { return false };
    matches!(request, topology::Request::Write { value, .. } if value == wanted.as_bytes())
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_was_long_in_doubt_is_not_written_over_what_others_have_written_since() {
    let cluster = Cluster::of(1).await;
    let (mut one, mut other) = (cluster.connect(), cluster.connect());
    let (began, mut attempts) = (Instant::now(), 0);
    cluster.backend.set_mishaps(move |envelope| {
        if !writes(envelope, "1") {
            return Mishap::Success;
        }
        attempts += 1;
        match attempts {
            // It is done, and whoever asked for it is not told, nor for long.
            1 => Mishap::UnknownButApplied,
            _ if began.elapsed() < LONG => Mishap::UnknownAndLost,
            _ => Mishap::Success,
        }
    });
    one.write("a", "1").await;
    sleep(LONG / 2).await;
    other.write("a", "2").await;
    assert_eq!(other.read("a").await.1, "2");
    sleep(LONG).await;
    assert_eq!(one.read("a").await.1, "2", "which it reads behind its own entry");
}

/// The first attempt to write "1" is executed or not, and those after it are lost until the session of the node has ended.
fn doubtful(cluster: &Cluster, is_executed: bool) {
    let (backend, began) = (Arc::downgrade(&cluster.backend), Instant::now());
    let (mut attempts, mut has_expired) = (0, false);
    cluster.backend.set_mishaps(move |envelope| {
        if !writes(envelope, "1") {
            return Mishap::Success;
        }
        attempts += 1;
        match attempts {
            1 if is_executed => Mishap::UnknownButApplied,
            _ if began.elapsed() < LONG => Mishap::UnknownAndLost,
            _ => {
                if !std::mem::replace(&mut has_expired, true) {
                    before(&backend, [end_of_sessions()]);
                }
                Mishap::Success
            }
        }
    });
}

#[tokio::test(start_paused = true)]
async fn an_entry_in_doubt_whose_session_has_ended_is_not_written_over_what_others_have_written_since() {
    let cluster = Cluster::of(1).await;
    let (mut one, mut other) = (cluster.connect(), cluster.connect());
    doubtful(&cluster, true);
    one.write("a", "1").await;
    sleep(LONG / 2).await;
    other.write("a", "2").await;
    assert_eq!(other.read("a").await.1, "2");
    sleep(LONG).await;
    assert_eq!(one.hear().await, None, "nobody knows what became of it");
    assert_eq!(other.read("a").await.1, "2");
}

#[tokio::test(start_paused = true)]
async fn an_entry_in_doubt_that_is_there_when_its_session_has_ended_is_written() {
    let cluster = Cluster::of(1).await;
    let mut one = cluster.connect();
    doubtful(&cluster, true);
    one.write("a", "1").await;
    sleep(LONG * 2).await;
    assert_eq!(one.read("a").await.1, "1", "on the same connection");
}

#[tokio::test(start_paused = true)]
async fn an_entry_in_doubt_that_is_not_there_when_its_session_has_ended_ends_the_connection() {
    let cluster = Cluster::of(1).await;
    let (mut one, mut other) = (cluster.connect(), cluster.connect());
    doubtful(&cluster, false);
    one.write("a", "1").await;
    sleep(LONG * 2).await;
    assert_eq!(one.hear().await, None);
    assert_eq!(other.read("a").await.1, "");
}

#[tokio::test(start_paused = true)]
async fn what_a_process_that_has_gone_wanted_to_write_is_not_written_behind_its_successor() {
    let cluster = Cluster::of(1).await;
    let mut one = cluster.connect();
    cluster.backend.depose();
    one.write("a", "1").await;
    let next = timeout(Duration::from_secs(1), one.read("b")).await;
    assert!(next.is_err(), "its next message waits behind the entry");
    drop(one);
    sleep(Duration::from_secs(5)).await;
    cluster.backend.elect();
    sleep(LONG).await;
    assert_eq!(cluster.connect().read("a").await.1, "");
}

#[tokio::test(start_paused = true)]
async fn what_waits_behind_a_question_of_a_process_that_has_gone_is_not_written_either() {
    let cluster = Cluster::of(1).await;
    let mut one = cluster.connect();
    cluster.backend.depose();
    one.ask_for("b").await;
    one.write("a", "1").await;
    drop(one);
    sleep(Duration::from_secs(5)).await;
    cluster.backend.elect();
    sleep(LONG).await;
    assert_eq!(cluster.connect().read("a").await.1, "");
}

#[tokio::test(start_paused = true)]
async fn however_often_a_process_asks_again_it_is_seen_that_it_has_gone() {
    let cluster = Cluster::of(1).await;
    let mut one = cluster.connect();
    cluster.backend.depose();
    one.write("a", "1").await;
    for _ in 0..17 {
        one.ask_for("b").await;
    }
    one.write("c", "1").await;
    drop(one);
    sleep(Duration::from_secs(5)).await;
    cluster.backend.elect();
    sleep(LONG).await;
    let mut other = cluster.connect();
    assert_eq!((other.read("a").await.1, other.read("c").await.1), (Bytes::new(), Bytes::new()));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_slow_over_its_next_message_has_not_gone() {
    let cluster = Cluster::of(1).await;
    let mut one = cluster.connect();
    cluster.backend.depose();
    one.write("a", "1").await;
    one.send(b"RPC0").await;
    // Longer than the rest of a message may take, and a while more.
    sleep(Duration::from_secs(50)).await;
    cluster.backend.elect();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(cluster.connect().read("a").await.1, "1");
}

#[tokio::test(start_paused = true)]
async fn what_a_process_has_written_just_before_it_ends_is_there() {
    let cluster = Cluster::of(1).await;
    let (mut one, mut other) = (cluster.connect(), cluster.connect());
    one.write("a", "1").await;
    drop(one);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(cluster.connect().read("a").await.1, "1");
    cluster.backend.depose();
    other.write("a", "2").await;
    drop(other);
    sleep(Duration::from_secs(1)).await;
    cluster.backend.elect();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(cluster.connect().read("a").await.1, "2", "an election is no reason to give it up");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_left_and_gone_while_nobody_led_has_left() {
    let cluster = Cluster::of(1).await;
    let mut one = cluster.connect();
    assert!(one.register(&of_2_0("0")).await.success);
    cluster.backend.depose();
    assert!(timeout(Duration::from_secs(1), one.unregister("0")).await.is_err(), "it waits");
    drop(one);
    sleep(Duration::from_secs(10)).await;
    cluster.backend.elect();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(cluster.view().state, TopoState::Finished);
}

#[tokio::test(start_paused = true)]
async fn a_node_has_left_behind_an_entry_that_was_given_up() {
    let cluster = Cluster::of(1).await;
    let mut one = cluster.connect();
    assert!(one.register(&of_2_0("0")).await.success);
    cluster.backend.depose();
    one.write("a", "1").await;
    assert!(timeout(Duration::from_secs(1), one.unregister("0")).await.is_err(), "it waits");
    drop(one);
    sleep(Duration::from_secs(10)).await;
    cluster.backend.elect();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(cluster.view().state, TopoState::Finished);
    assert_eq!(cluster.connect().read("a").await.1, "");
}

#[tokio::test(start_paused = true)]
async fn a_node_has_left_behind_questions_whose_answers_nobody_takes() {
    let cluster = Cluster::of(1).await;
    let mut one = cluster.connect();
    assert!(one.register(&of_2_0("0")).await.success);
    cluster.backend.depose();
    for _ in 0..5 {
        one.ask_for("b").await;
    }
    assert!(timeout(Duration::from_secs(1), one.unregister("0")).await.is_err(), "it waits");
    drop(one);
    sleep(Duration::from_secs(10)).await;
    cluster.backend.elect();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(cluster.view().state, TopoState::Finished);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_has_gone_before_it_was_registered_takes_no_place() {
    let cluster = Cluster::of(1).await;
    let mut one = cluster.connect();
    cluster.backend.depose();
    assert!(timeout(Duration::from_secs(1), one.register(&of_2_0("0"))).await.is_err(), "it waits");
    drop(one);
    sleep(Duration::from_secs(10)).await;
    cluster.backend.elect();
    sleep(Duration::from_secs(5)).await;
    assert!(cluster.connect().register(&of_2_0("1")).await.success, "its place is free");
}

#[tokio::test(start_paused = true)]
async fn a_node_has_left_behind_an_answer_that_it_did_not_take() {
    let cluster = Cluster::of(1).await;
    let mut one = cluster.connect();
    assert!(one.register(&of_2_0("0")).await.success);
    // Both are there when the node looks, and nobody is when it answers the first.
    one.say("2", pb::HeartbeatMessage { node_id: "0".into() }.encode_to_vec()).await;
    one.say("1", pb::UnregistrationMessage { node_id: "0".into() }.encode_to_vec()).await;
    drop(one);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(cluster.view().state, TopoState::Finished);
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_process_that_has_gone_keeps_no_place_until_somebody_leads() {
    let cluster = Cluster::of(1).await;
    cluster.backend.depose();
    let stranger = pb::HeartbeatMessage { node_id: "9".into() }.encode_to_vec();
    let entry = pb::MetadataMessage { name: "a".into(), value: Bytes::new() }.encode_to_vec();
    for (name, body) in [("2", stranger), ("7", entry), ("9", b"MS_WORKER".to_vec())] {
        let mut one = cluster.connect();
        for _ in 0..3 {
            one.say(name, body.clone()).await;
        }
        one.end().await;
        let began = Instant::now();
        assert_eq!(timeout(LONG, one.hear()).await, Ok(None), "message {name}");
        assert!(began.elapsed() < Duration::from_secs(10), "message {name}: {:?}", began.elapsed());
    }
    cluster.backend.elect();
    let mut one = cluster.connect();
    one.ask_for("a").await;
    one.end().await;
    assert!(one.hear().await.is_some(), "who only says nothing more is answered");
}
