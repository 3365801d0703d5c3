//! What one node tells all.

use tripod_proto::mindspore::ps_core::NodeCommand;

use crate::nodes::{Node, formed};
use crate::support::Cluster;

#[tokio::test(start_paused = true)]
async fn an_event_reaches_all_in_order_and_its_sender_too() {
    let (cluster, mut worker, mut servers) = formed(&["srv-0", "srv-1"]).await;
    let first = worker.event(7);
    worker.report(NodeCommand::SendEvent, first).await;
    let second = servers[1].event(0);
    servers[1].report(NodeCommand::SendEvent, second).await;
    let told = cluster.tell().await;
    let hears = |node: &str| {
        [format!("{node} hears event 0 as number 2"), format!("{node} hears event 7 as number 1")]
    };
    assert_eq!(told, [hears("srv-0"), hears("srv-1"), hears("wrk")].concat());
    assert_eq!(cluster.view().events, 0, "all have them");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_nobody_could_hear_is_not_said_to_be_noted() {
    let cluster = Cluster::of(1, 1).await;
    let mut worker = Node::worker(&cluster, "wrk", 4000);
    worker.register().await;
    let early = worker.event(1);
    worker.line.say_in_vain(NodeCommand::SendEvent, early).await;
    let mut server = Node::server(&cluster, "srv-0", 5000);
    server.register().await;
    let strange = Node::worker(&cluster, "nobody", 1).event(1);
    server.line.say_in_vain(NodeCommand::SendEvent, strange).await;
    assert_eq!(cluster.view().events, 0);
}
