//! Messages while nobody leads, on other connections, and while the port stops.

use std::time::Duration;

use prost::Message as _;
use tokio::time::timeout;
use tripod_proto::mindspore::ps_core::{HeartbeatMessage, NodeCommand, RegisterRespMessage};

use crate::nodes::{NO_RANK, Node, formed};
use crate::support::Cluster;

/// Beyond the patience of one call of the gateway.
const LONG: Duration = Duration::from_secs(300);

#[tokio::test(start_paused = true)]
async fn while_nobody_leads_reports_are_held_and_heartbeats_are_answered_before_them() {
    let (cluster, mut worker, _servers) = formed(&["srv-0"]).await;
    cluster.backend.depose();
    let payload = worker.event(3);
    let event = worker.line.say(NodeCommand::SendEvent.into(), 0, payload.clone()).await;
    for _ in 0..20 {
        assert_eq!(worker.state().await, "CLUSTER_READY");
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    assert_eq!(cluster.view().events, 0);
    cluster.backend.elect();
    assert_eq!(worker.line.answer(&event).await, payload);
    assert_eq!(cluster.view().events, 1, "once");
}

#[tokio::test(start_paused = true)]
async fn a_registration_waits_for_a_leader_and_what_follows_it_is_answered_in_order() {
    let (cluster, _worker, mut servers) = formed(&["srv-0"]).await;
    cluster.backend.depose();
    let again = servers[0].registration().encode_to_vec();
    let register = servers[0].line.say(NodeCommand::Register.into(), 0, again).await;
    let payload = servers[0].event(1);
    let event = servers[0].line.say(NodeCommand::SendEvent.into(), 0, payload.clone()).await;
    assert!(timeout(LONG, servers[0].line.hear()).await.is_err(), "they wait");
    cluster.backend.elect();
    let registered = RegisterRespMessage::decode(servers[0].line.answer(&register).await).unwrap();
    assert_eq!(registered.rank_id, 0);
    assert_eq!(servers[0].line.answer(&event).await, payload);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_on_a_new_connection_is_enough_to_go_on() {
    let (cluster, mut worker, _servers) = formed(&["srv-0"]).await;
    worker.line = cluster.connect();
    assert_eq!(worker.state().await, "CLUSTER_READY");
    let event = worker.event(5);
    worker.report(NodeCommand::SendEvent, event).await;
    assert_eq!(cluster.tell().await.len(), 2);
    // Another address is another process, which has not registered.
    let elsewhere = HeartbeatMessage {
        node_id: "wrk".into(),
        has_address: true,
        ip: "192.0.2.2".into(),
        port: 4001,
        ..Default::default()
    };
    let mut other = cluster.connect();
    assert_eq!(other.beat(&elsewhere).await, Default::default());
}

#[tokio::test(start_paused = true)]
async fn a_port_that_stops_ends_connections_and_says_nothing_that_is_not_so() {
    let (cluster, worker, mut servers) = formed(&["srv-0"]).await;
    let Node { line: mut idle, .. } = worker;
    cluster.backend.depose();
    let event = servers[0].event(1);
    servers[0].line.say(NodeCommand::SendEvent.into(), 0, event).await;
    assert!(timeout(LONG, servers[0].line.hear()).await.is_err());
    let mut tasks = cluster.stop();
    assert_eq!(idle.hear().await, None);
    assert_eq!(servers[0].line.hear().await, None, "nobody knows what becomes of it");
    tasks.join_next().await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_process_that_has_gone_before_it_was_registered_is_not_registered_behind_the_next() {
    let cluster = Cluster::of(1, 1).await;
    let mut last = Node::server(&cluster, "srv-0", 5000);
    cluster.backend.depose();
    let message = last.registration().encode_to_vec();
    last.line.say(NodeCommand::Register.into(), NO_RANK, message).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(last);
    tokio::time::sleep(Duration::from_secs(10)).await;
    cluster.backend.elect();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(cluster.node("srv-0"), None);
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_node_that_has_gone_keeps_no_place_until_somebody_leads() {
    let (cluster, _worker, _servers) = formed(&["srv-0"]).await;
    cluster.backend.depose();
    let mut one = cluster.connect();
    for _ in 0..3 {
        one.say(NodeCommand::FetchMetadata.into(), 0, "").await;
    }
    one.end().await;
    assert_eq!(timeout(Duration::from_secs(10), one.hear()).await, Ok(None));
    cluster.backend.elect();
    let mut one = cluster.connect();
    one.say(NodeCommand::FetchMetadata.into(), 0, "").await;
    one.end().await;
    assert!(one.hear().await.is_some(), "who only says nothing more is answered");
}

#[tokio::test(start_paused = true)]
async fn what_a_node_has_said_is_done_though_it_is_lost_within_its_next_message() {
    let (cluster, mut worker, _servers) = formed(&["srv-0"]).await;
    cluster.backend.depose();
    worker.line.say(NodeCommand::Finish.into(), 0, "wrk").await;
    worker.line.send(&[1, 0, 0]).await;
    drop(worker);
    tokio::time::sleep(Duration::from_secs(10)).await;
    cluster.backend.elect();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(cluster.node("wrk").expect("it belongs to the cluster").is_finished);
}
