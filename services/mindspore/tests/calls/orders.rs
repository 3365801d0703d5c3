//! What nodes are told while all of them answer.

use bytes::Bytes;
use tripod_state::mindspore::Answer;
use tripod_state::mindspore::cluster::{ClusterState, Request, Switch};

use crate::played::{Manner, Played};
use crate::support::{Cluster, heard};

#[tokio::test(start_paused = true)]
async fn all_are_told_of_each_other_of_events_in_their_order_and_of_the_end() {
    let mut cluster = Cluster::of(1, 2).await;
    let mut nodes = Vec::new();
    for node in ["s0", "w0", "s1"] {
        nodes.push(cluster.start(node).await);
    }
    cluster.settled().await;
    let of = |rank| vec![format!("metadata CLUSTER_STARTING rank={rank} 1+2: w0 s0 s1")];
    assert_eq!(heard(&nodes), [of(0), of(0), of(1)]);
    for event in [7, 3, 3] {
        cluster.event("w0", event).await;
    }
    cluster.settled().await;
    assert_eq!(heard(&nodes), [["event 7", "event 3", "event 3"]; 3]);
    assert_eq!(cluster.view().events, 0, "nobody needs them any more");
    for node in ["s0", "s1", "w0"] {
        cluster.finish(node).await;
    }
    cluster.settled().await;
    assert_eq!(heard(&nodes), [["finish"]; 3]);
    assert!(cluster.backend.state().cluster_members(cluster.scope.job).is_empty(), "nobody is watched");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_registers_again_is_told_again_what_it_may_have_lost() {
    let mut cluster = Cluster::of(0, 2).await;
    let nodes = cluster.start_all(&["s0", "s1"]).await;
    cluster.register("s1", 2).await;
    cluster.settled().await;
    let told = "metadata CLUSTER_STARTING rank=1 0+2: s0 s1".to_owned();
    assert_eq!(heard(&nodes), [vec![], vec![told.clone()]]);
    cluster.register("s1", 2).await;
    cluster.settled().await;
    assert_eq!(heard(&nodes), [vec![], vec![told]]);
}

#[tokio::test(start_paused = true)]
async fn another_process_of_a_node_is_called_where_it_listens() {
    let mut cluster = Cluster::of(1, 1).await;
    let nodes = cluster.start_all(&["w0", "s0"]).await;
    let moved = Played::at("10.0.0.1:99", &cluster.lines);
    cluster.register("s0", 99).await;
    cluster.event("w0", 5).await;
    cluster.settled().await;
    let metadata = |state: &str| format!("metadata CLUSTER_{state} rank=0 1+1: w0 s0");
    assert_eq!(heard(&nodes), [vec![metadata("READY"), "event 5".to_owned()], vec![]]);
    assert_eq!(moved.heard(), [metadata("STARTING"), "event 5".to_owned()]);
}

#[tokio::test(start_paused = true)]
async fn servers_are_told_what_an_operator_tells_them_and_the_cluster_goes_on_when_all_have_answered() {
    let mut cluster = Cluster::of(1, 2).await;
    let nodes = cluster.start_all(&["w0", "s0", "s1"]).await;
    let body = Bytes::from_static(b"{\"epochs\": 3}");
    let answer = cluster.ask(Request::Switch { switch: Switch::NewInstance, body }).await;
    let Answer::Switching { switch } = answer else { panic!("{answer:?}") };
    cluster.settled().await;
    let told = |rank| vec![format!("data 19 rank={rank} {{\"epochs\": 3}}")];
    assert_eq!(heard(&nodes), [vec![], told(0), told(1)]);
    assert_eq!(cluster.view().state, ClusterState::Ready);
    let answers = cluster.mindspore.switch_answers(cluster.scope.job, switch).await.unwrap();
    let answer = |rank: u32| (rank, Bytes::from(format!("{{\"rank\": {rank}, \"command\": 19}}")));
    assert_eq!(answers, [answer(0), answer(1)]);
    assert_eq!(cluster.mindspore.switch_answers(cluster.scope.job, switch + 1).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn servers_that_do_not_answer_what_an_operator_tells_them_are_not_waited_for() {
    let mut cluster = Cluster::of(0, 2).await;
    let nodes = cluster.start_all(&["s0", "s1"]).await;
    nodes[1].behave(Manner::Silent);
    let switch = Request::Switch { switch: Switch::DisableFls, body: Bytes::new() };
    cluster.ask(switch).await;
    let began = tokio::time::Instant::now();
    assert_eq!(cluster.view().state, ClusterState::DisableFls);
    let ready = || (cluster.view().state == ClusterState::Ready).then_some(());
    tripod_wait::until("the cluster goes on", ready).await;
    assert!(began.elapsed().as_secs() >= 3, "as long as upstream waits");
    nodes[1].behave(Manner::Answers);
    cluster.event("s0", 1).await;
    cluster.settled().await;
    assert_eq!(heard(&nodes), [["data 22 rank=0 ", "event 1"], ["data 22 rank=1 ", "event 1"]]);
}
