//! A node dies, and another process takes its place.

use tripod_proto::mindspore::ps_core::{NodeCommand, ServersMeta};
use tripod_state::mindspore::Decision;

use crate::nodes::{Node, formed};

fn of<'a>(nodes: &'a [ServersMeta], id: &str) -> &'a ServersMeta {
    nodes.iter().find(|node| node.node_id == id).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_dead_server_is_replaced_in_its_window_and_nobody_is_told_to_stop() {
    let (cluster, mut worker, mut servers) = formed(&["srv-0", "srv-1"]).await;
    cluster.lose("srv-1").await;
    let beat = worker.beat().await;
    assert_eq!(beat.cluster_state().as_str_name(), "CLUSTER_READY");
    assert!(!of(&beat.servers_meta, "srv-1").is_alive && !beat.is_worker_or_server0);
    let mut other = Node::server(&cluster, "srv-2", 5002);
    assert_eq!(other.register().await, 1, "its rank");
    let told = cluster.tell().await;
    assert_eq!(
        told,
        ["srv-0 learns of all, ready", "srv-2 learns of all, starting", "wrk learns of all, ready"]
    );
    let beat = worker.beat().await;
    assert!(of(&beat.servers_meta, "srv-2").is_alive && beat.servers_meta.len() == 3);
    // The one that was given up for dead speaks again.
    let finish: &[u8] = b"srv-1";
    servers[1].line.say_in_vain(NodeCommand::Finish, finish).await;
    let beat = servers[1].beat().await;
    assert_eq!(beat.cluster_state().as_str_name(), "NODE_TIMEOUT", "which ends it");
    assert!(beat.is_worker_or_server0 && beat.servers_meta.is_empty());
    assert_eq!(other.state().await, "CLUSTER_READY");
}

#[tokio::test(start_paused = true)]
async fn the_next_process_of_a_node_has_its_rank_and_the_last_one_has_no_say() {
    let (cluster, mut worker, mut servers) = formed(&["srv-0"]).await;
    let mut next = Node::server(&cluster, "srv-0", 5100);
    assert_eq!(next.register().await, 0, "at once: nobody waits until the last one is silent");
    cluster.tell().await;
    assert_eq!(of(&worker.beat().await.servers_meta, "srv-0").port, 5100);
    let event = servers[0].event(1);
    servers[0].line.say_in_vain(NodeCommand::SendEvent, event).await;
    assert_eq!(servers[0].state().await, "NODE_TIMEOUT");
    assert_eq!(next.state().await, "CLUSTER_READY");
    next.finish().await;
    assert!(cluster.node("srv-0").unwrap().is_finished);
}

#[tokio::test(start_paused = true)]
async fn when_nobody_comes_in_the_place_of_the_first_server_all_are_told_to_stop() {
    let (cluster, mut worker, servers) = formed(&["srv-0"]).await;
    drop(servers);
    cluster.lose("srv-0").await;
    assert!(worker.beat().await.is_worker_or_server0);
    assert_eq!(worker.state().await, "CLUSTER_READY");
    tokio::time::sleep(std::time::Duration::from_secs(121)).await;
    let node = cluster.node("srv-0").unwrap();
    cluster.decide(Decision::ClusterGaveUp { nodes: vec![(node.member, node.incarnation)] }).await.unwrap();
    assert_eq!(worker.state().await, "NODE_TIMEOUT");
    let mut late = Node::server(&cluster, "srv-9", 5009);
    assert_eq!(late.register().await, 0, "its place can be taken still");
    assert_eq!(worker.state().await, "CLUSTER_READY");
}
