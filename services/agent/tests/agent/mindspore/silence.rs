//! Nodes that go, and clients that do.

use std::time::Duration;

use bytes::Bytes;
use tripod_mindspore_wire::rpc0;

use super::Setting;
use super::nodes::Script;
use crate::support::{lines, until};

#[tokio::test(start_paused = true)]
async fn a_worker_keeps_its_connections_when_its_node_dies() {
    let setting = Setting::new(Script::default()).await;
    let (mut worker, mut metadata) = (setting.connect(), setting.connect());
    worker.register("0").await;
    metadata.write("a", "1").await;
    metadata.read("a").await;
    assert_eq!(setting.served.upstream().as_deref(), Some("node-1:7700"));
    setting.nodes.kill(1);
    metadata.write("a", "2").await;
    let (name, body) = metadata.read("a").await;
    assert!(name == "10" && body.ends_with(b"2"), "{body:?}");
    assert_eq!(worker.beat("0").await.0, "3");
    assert_eq!(setting.served.upstream().as_deref(), Some("node-2:7700"));
    setting.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_frozen_node_is_left_within_seconds() {
    let setting = Setting::new(Script::default()).await;
    let mut worker = setting.connect();
    worker.register("0").await;
    let frozen = ["node-1:7700", "node-1:8400"].map(|place| lines().freeze(place));
    let begun = tokio::time::Instant::now();
    assert_eq!(worker.beat("0").await.0, "3");
    // A heartbeat of a worker waits for ten.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    drop(frozen);
    setting.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_the_node_does_not_serve_yet_is_waited_for() {
    let setting = Setting::new(Script::default()).await;
    setting.nodes.tell_port(1, false);
    let mut worker = setting.connect();
    let registered = tokio::spawn(async move { worker.register("0").await });
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!registered.is_finished(), "nobody can answer");
    setting.nodes.tell_port(1, true);
    assert_eq!(registered.await.expect("no panic").0, "3");
    setting.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_client_has_written_just_before_it_went_is_finished_and_what_it_asked_is_not() {
    let setting = Setting::new(Script::default()).await;
    setting.nodes.tell_port(1, false);
    let (mut writer, mut reader) = (setting.connect(), setting.connect());
    writer.write("a", "1").await;
    reader.say("7", Bytes::new()).await;
    until("both are there", || setting.served.status().clients == 2).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop((writer, reader));
    until("who only asked is let go", || setting.served.status().clients == 1).await;
    assert_eq!(setting.nodes.entry("a"), None);
    setting.nodes.tell_port(1, true);
    until("it is written", || setting.nodes.entry("a").is_some_and(|value| value == "1")).await;
    until("nobody is left", || setting.served.status().clients == 0).await;
    assert_eq!(setting.served.status().held_bytes, 0);
    setting.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_client_that_has_gone_wanted_to_write_is_not_written_behind_its_successor() {
    let setting = Setting::new(Script::default()).await;
    let (mut one, mut other) = (setting.connect(), setting.connect());
    for client in [&mut one, &mut other] {
        client.write("c", "1").await;
        assert_eq!(client.read("c").await.0, "10");
    }
    setting.nodes.backend.depose();
    one.write("a", "1").await;
    one.write("b", "1").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(one);
    other.write("a", "2").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(setting.served.status().clients, 1, "who has gone has nothing left to be done");
    setting.nodes.backend.elect();
    until("the other's is written", || setting.nodes.entry("a").is_some_and(|value| value == "2")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(setting.nodes.entry("a").as_deref(), Some(&b"2"[..]));
    assert_eq!(setting.nodes.entry("b"), None, "it waited behind the first one");
    setting.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_left_and_gone_while_nobody_led_has_left_behind_what_it_wanted_to_write() {
    let setting = Setting::new(Script::default()).await;
    let (mut first, mut second) = (setting.connect(), setting.connect());
    first.register("0").await;
    second.register("1").await;
    setting.nodes.backend.depose();
    first.write("a", "1").await;
    first.leave("0").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(first);
    tokio::time::sleep(Duration::from_secs(10)).await;
    setting.nodes.backend.elect();
    let nodes = &setting.nodes;
    let members = || nodes.backend.state().topology_nodes(nodes.scope).expect("the job is there");
    until("it has left", || members().len() == 1).await;
    assert_eq!(setting.nodes.entry("a"), None);
    setting.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_gone_before_it_was_registered_takes_no_place() {
    let setting = Setting::new(Script::default()).await;
    let mut other = setting.connect();
    other.register("1").await;
    setting.nodes.backend.depose();
    let mut one = setting.connect();
    one.come("0").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(one);
    tokio::time::sleep(Duration::from_secs(10)).await;
    setting.nodes.backend.elect();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let nodes = setting.nodes.backend.state().topology_nodes(setting.nodes.scope).expect("the job is there");
    assert_eq!(nodes.iter().map(|node| node.node.as_str()).collect::<Vec<_>>(), ["1"]);
    setting.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_that_nobody_answers_for_too_long_ends_its_connection() {
    let setting = Setting::with(Script::default(), |mut config| {
        config.timing.max_outage = Duration::from_secs(20);
        config
    })
    .await;
    setting.nodes.tell_port(1, false);
    let mut worker = setting.connect();
    worker.say("2", Bytes::new()).await;
    let begun = tokio::time::Instant::now();
    assert_eq!(worker.hear::<rpc0::Frame>().await, None);
    assert!((20..25).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    setting.end().await;
}
