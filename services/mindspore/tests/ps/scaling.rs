//! A cluster gets more servers, and fewer.

use tripod_proto::mindspore::ps_core::{NodeCommand, RegisterMessage};

use crate::nodes::{Node, formed};
use crate::operator::Operator;
use crate::support::Cluster;

const BEGUN_OUT: (u16, &str) = (200, r#"{"message":"Cluster begin to scale out."}"#);
const BEGUN_IN: (u16, &str) = (200, r#"{"message":"Cluster begin to scale in."}"#);

fn seen((status, body): &(u16, String)) -> (u16, &str) {
    (*status, body.as_str())
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scales_out_and_in_and_out_again_and_nobody_is_done_too_early() {
    let (cluster, mut worker, mut servers) = formed(&["srv-0"]).await;
    let mut operator = Operator::on(cluster.dial());
    let begun = operator.post("/scaleout", r#"{"worker_num": 0, "server_num": 2}"#).await;
    assert_eq!(seen(&begun), BEGUN_OUT);
    assert_eq!(cluster.tell().await, ["srv-0 scales out to 1+3", "wrk scales out to 1+3"]);
    assert_eq!(worker.state().await, "CLUSTER_SCALE_OUT");
    for (port, id) in [(5001, "srv-1"), (5002, "srv-2")] {
        let mut server = Node::server(&cluster, id, port);
        server.register().await;
        servers.push(server);
    }
    assert_eq!(
        (worker.register().await, servers[0].register().await),
        (0, 0),
        "they offer the ranks that they have"
    );
    assert_eq!([servers[1].rank, servers[2].rank], [1, 2]);
    let told = cluster.tell().await;
    assert_eq!(told.len(), 4);
    assert!(told.iter().all(|told| told.ends_with(" learns of all, scale-out")), "{told:?}");
    for node in &mut servers {
        let done = node.done();
        node.report(NodeCommand::ScaleOutDone, done).await;
    }
    assert_eq!(worker.state().await, "CLUSTER_SCALE_OUT", "one is not done");
    assert_eq!(
        operator.get("/state").await.1,
        r#"{"cluster_state":"CLUSTER_SCALE_OUT","message":"Get cluster state successful."}"#
    );
    let done = worker.done();
    worker.report(NodeCommand::ScaleOutDone, done).await;
    assert_eq!(worker.state().await, "CLUSTER_READY");
    let told = cluster.tell().await;
    assert!(told.len() == 4 && told.iter().all(|told| told.ends_with(" has scaled out")), "{told:?}");

    let begun = operator.post("/scalein", r#"{"node_ids": ["srv-1"]}"#).await;
    assert_eq!(seen(&begun), BEGUN_IN);
    let told = cluster.tell().await;
    assert_eq!(
        told,
        [
            "srv-0 scales in to 1+2",
            "srv-1 scales in to 1+2 and leaves",
            "srv-2 scales in to 1+2",
            "wrk scales in to 1+2"
        ]
    );
    for node in [&mut worker, &mut servers[0]] {
        node.register().await;
    }
    assert_eq!(servers[2].register().await, 1, "no rank is left out");
    let told = cluster.tell().await;
    assert!(
        told.len() == 4 && told.iter().all(|told| told.ends_with(" learns of all, scale-in")),
        "{told:?}"
    );
    for node in servers.iter_mut().chain([&mut worker]) {
        assert_eq!(node.state().await, "CLUSTER_SCALE_IN");
        let done = node.done();
        node.report(NodeCommand::ScaleInDone, done).await;
    }
    assert_eq!(worker.state().await, "CLUSTER_READY");
    assert_eq!(worker.beat().await.servers_meta.len(), 3, "nobody is told of who leaves");
    cluster.tell().await;
    servers[1].finish().await;
    assert_eq!(servers[1].state().await, "CLUSTER_EXIT");
    assert_eq!(cluster.node("srv-1"), None);
    scales_out_once_more(&cluster, &mut operator, worker, servers).await;
}

/// `servers` are one that stays, one that has left, and one that stays.
async fn scales_out_once_more(
    cluster: &Cluster,
    operator: &mut Operator,
    mut worker: Node,
    mut servers: Vec<Node>,
) {
    let begun = operator.post("/scaleout", r#"{"worker_num": 0, "server_num": 1}"#).await;
    assert_eq!(seen(&begun), BEGUN_OUT);
    cluster.tell().await;
    let mut last = Node::server(cluster, "srv-3", 5003);
    assert_eq!(last.register().await, 2);
    for node in [&mut worker, &mut servers[0], &mut last] {
        node.register().await;
    }
    assert_eq!(servers.pop().unwrap().register().await, 1);
    cluster.tell().await;
    let done = last.done();
    last.report(NodeCommand::ScaleOutDone, done).await;
    assert_eq!(
        worker.state().await,
        "CLUSTER_SCALE_OUT",
        "what was reported for the first time does not count"
    );
}

#[tokio::test(start_paused = true)]
async fn scaling_out_is_taken_back_by_an_operator_or_by_a_server_that_recovers() {
    let (cluster, mut worker, mut servers) = formed(&["srv-0"]).await;
    let mut operator = Operator::on(cluster.dial());
    let more = r#"{"worker_num": 0, "server_num": 1}"#;
    assert_eq!(seen(&operator.post("/scaleout", more).await), BEGUN_OUT);
    let mut newcomer = Node::server(&cluster, "srv-1", 5001);
    assert_eq!(newcomer.register().await, 1);
    let taken_back = operator.get("/scaleoutRollback").await;
    assert_eq!(seen(&taken_back), (200, r#"{"message":"Cluster scale out rollback success."}"#));
    assert_eq!(newcomer.state().await, "NODE_TIMEOUT", "nobody knows it any more");
    assert_eq!(worker.state().await, "CLUSTER_SCALE_OUT", "nodes before 1.8 know no other name");
    worker.register().await;
    servers[0].register().await;
    cluster.tell().await;
    assert_eq!(worker.state().await, "CLUSTER_READY");

    assert_eq!(seen(&operator.post("/scaleout", more).await), BEGUN_OUT);
    let message = RegisterMessage { is_recover: true, ..servers[0].registration() };
    assert_eq!(servers[0].register_as(&message).await, 0);
    assert_eq!(servers[0].state().await, "CLUSTER_SCALE_OUT_ROLLBACK", "which says that it is of 2.0");
    assert_eq!(cluster.view().expected.servers, 1);
}
