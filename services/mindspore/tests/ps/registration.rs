//! How nodes come together.

use std::time::Duration;

use prost::Message as _;
use tokio::time::{Instant, sleep};
use tripod_proto::mindspore::ps_core::{
    HeartbeatMessage, NodeCommand, NodeRole, RegisterMessage, RegisterRespMessage,
};
use tripod_state::mindspore::Decision;
use tripod_state::mindspore::cluster::Echo;

use crate::nodes::{NO_RANK, Node, formed};
use crate::support::Cluster;

#[tokio::test(start_paused = true)]
async fn nodes_get_their_ranks_and_hear_that_the_cluster_is_ready_when_all_are_there() {
    let cluster = Cluster::of(1, 2).await;
    let mut worker = Node::worker(&cluster, "wrk", 4000);
    let mut one = Node::server(&cluster, "srv-0", 5000);
    let mut two = Node::server(&cluster, "srv-1", 5001);
    assert_eq!((one.register().await, worker.register().await), (0, 0), "ranks count for each role");
    assert_eq!(one.state().await, "CLUSTER_STARTING");
    assert_eq!(two.state().await, "CLUSTER_STARTING", "it has not registered");
    assert_eq!(two.beat().await.servers_meta, [], "and learns of nobody");
    assert_eq!(two.register().await, 1);
    let beat = two.beat().await;
    assert_eq!(beat.cluster_state().as_str_name(), "CLUSTER_READY");
    let listed = |node: &tripod_proto::mindspore::ps_core::ServersMeta| {
        (node.node_id.clone(), node.role(), node.rank_id, node.port, node.is_alive)
    };
    let all: Vec<_> = beat.servers_meta.iter().map(listed).collect();
    assert_eq!(
        all,
        [
            ("wrk".to_owned(), NodeRole::Worker, 0, 4000, true),
            ("srv-0".to_owned(), NodeRole::Server, 0, 5000, true),
            ("srv-1".to_owned(), NodeRole::Server, 1, 5001, true),
        ]
    );
    assert!(!beat.is_worker_or_server0);
    assert_eq!(cluster.tell().await.len(), 3, "all are told of each other");
    assert_eq!(one.register().await, 0, "a known node keeps its rank");
}

#[tokio::test(start_paused = true)]
async fn a_node_for_whom_there_is_no_place_or_no_role_has_no_rank_and_leaves_nothing() {
    let (cluster, worker, mut servers) = formed(&["srv-0"]).await;
    let mut more = Node::server(&cluster, "srv-1", 5001);
    assert_eq!(more.register().await, NO_RANK);
    for role in [i32::from(NodeRole::Scheduler), 9] {
        let message = RegisterMessage { role, ..worker.registration() };
        assert_eq!(more.register_as(&RegisterMessage { node_id: "x".into(), ..message }).await, NO_RANK);
    }
    let nameless = RegisterMessage { node_id: String::new(), ..worker.registration() };
    assert_eq!(more.register_as(&nameless).await, NO_RANK);
    assert_eq!(servers[0].beat().await.servers_meta.len(), 2);
    assert_eq!(cluster.view().present, 2);
}

#[tokio::test(start_paused = true)]
async fn a_node_at_an_address_that_is_not_connected_to_is_not_registered_and_leaves_nothing() {
    let cluster = Cluster::of(1, 1).await;
    let mut node = Node::server(&cluster, "srv-0", 5000);
    // Of many machines at once, whatever nodes are allowed to connect to.
    let elsewhere = RegisterMessage { ip: "224.0.0.1".into(), ..node.registration() };
    assert_eq!(node.register_as(&elsewhere).await, NO_RANK);
    assert_eq!(cluster.view().present, 0);
    assert_eq!(node.register().await, 0, "its connection goes on");
}

#[tokio::test(start_paused = true)]
async fn nodes_of_2_0_fetch_all_nodes_and_earlier_ones_all_servers() {
    let (cluster, mut worker, _servers) = formed(&["srv-0", "srv-1"]).await;
    let earlier = worker.line.fetch().await;
    let ports: Vec<u32> = earlier.iter().map(|node| node.port).collect();
    assert_eq!(ports, [5000, 5001], "a worker among them would be taken for a server");
    assert!(earlier.iter().all(|node| node.node_id.is_empty() && !node.is_alive));
    // Workers of 2.0 say where they are.
    let placed = HeartbeatMessage {
        node_id: "wrk".into(),
        has_address: true,
        ip: "192.0.2.2".into(),
        port: 4000,
        ..Default::default()
    };
    assert_eq!(worker.line.beat(&placed).await.servers_meta.len(), 3);
    let later = worker.line.fetch().await;
    assert_eq!(later.iter().map(|node| node.node_id.as_str()).collect::<Vec<_>>(), ["wrk", "srv-0", "srv-1"]);
    drop(cluster);
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_of_a_scheduler_of_2_0_and_is_not_done_is_answered_with_nothing() {
    let (_cluster, mut worker, _servers) = formed(&["srv-0"]).await;
    for command in [
        NodeCommand::RegisterActorRoute,
        NodeCommand::DeleteActorRoute,
        NodeCommand::LookupActorRoute,
        NodeCommand::SendHostName,
        NodeCommand::QueryHostNames,
        NodeCommand::SendUniqueId,
        NodeCommand::QueryUniqueId,
        NodeCommand::SendFinishTransform,
        NodeCommand::QueryFinishTransform,
        NodeCommand::FailureEventInfo,
    ] {
        assert_eq!(worker.line.ask(command, "anything").await, "", "{command:?}");
    }
    assert_eq!(worker.state().await, "CLUSTER_READY", "and ends nothing");
}

/// A worker and a server that are there and have not been told of each other yet.
async fn untold() -> (Cluster, Node, Node) {
    let cluster = Cluster::of(1, 1).await;
    let mut worker = Node::worker(&cluster, "wrk", 4000);
    let mut server = Node::server(&cluster, "srv-0", 5000);
    assert_eq!((worker.register().await, server.register().await), (0, 0));
    (cluster, worker, server)
}

#[tokio::test(start_paused = true)]
async fn who_registers_again_while_its_answer_is_on_its_way_into_the_log_is_told_of_the_others_once_more() {
    let (cluster, _worker, mut server) = untold().await;
    // All were told, and what they have answered is in no log yet.
    let recipients = cluster.backend.state().cluster_orders(cluster.scope.job);
    let echo = |member, incarnation, order| Echo { member, incarnation, order };
    let echoes: Vec<Echo> =
        recipients.iter().map(|node| echo(node.member, node.incarnation, node.orders[0])).collect();
    assert_eq!(echoes.len(), 2);
    let again = server.registration().encode_to_vec();
    let register = server.line.say(NodeCommand::Register.into(), 0, again).await;
    sleep(Duration::from_millis(200)).await;
    cluster.decide(Decision::Echoed { echoes }).await.unwrap();
    let registered = RegisterRespMessage::decode(server.line.answer(&register).await).unwrap();
    assert_eq!(registered.rank_id, 0);
    assert_eq!(cluster.tell().await, ["srv-0 learns of all, starting"], "whatever it was told before");
}

#[tokio::test(start_paused = true)]
async fn a_registration_waits_for_no_answer_that_does_not_come() {
    let (cluster, _worker, mut server) = untold().await;
    let began = Instant::now();
    assert_eq!(server.register().await, 0);
    assert!(began.elapsed() < Duration::from_secs(2), "its node waits for three seconds");
    assert_eq!(cluster.tell().await.len(), 2);
}
