//! How a cluster ends.

use tripod_proto::mindspore::ps_core::NodeCommand;

use crate::nodes::{Node, formed};

#[tokio::test(start_paused = true)]
async fn when_all_who_live_have_finished_all_are_told_also_beside_a_dead_one() {
    let (cluster, mut worker, mut servers) = formed(&["srv-0", "srv-1"]).await;
    cluster.lose("srv-1").await;
    worker.finish().await;
    assert_eq!(worker.state().await, "CLUSTER_READY", "one is still at work");
    servers[0].finish().await;
    assert_eq!(worker.state().await, "CLUSTER_EXIT");
    assert_eq!(cluster.tell().await, ["srv-0 may go", "wrk may go"]);
    servers[0].finish().await;
    let mut next = Node::worker(&cluster, "wrk-next", 4100);
    assert_eq!(next.register().await, 0, "another cluster begins");
    assert_eq!(worker.state().await, "CLUSTER_EXIT", "for a process of the last one nothing changes");
    assert_eq!(next.state().await, "CLUSTER_STARTING");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_nobody_knows_cannot_finish() {
    let (cluster, mut worker, mut servers) = formed(&["srv-0"]).await;
    worker.finish().await;
    servers[0].line.say_in_vain(NodeCommand::Finish, "nobody").await;
    servers[0].line.say_in_vain(NodeCommand::Finish, &b"\xff\xfe"[..]).await;
    assert_eq!(servers[0].state().await, "CLUSTER_READY");
    assert!(cluster.node("wrk").unwrap().is_finished);
}
