//! Clusters that grow and shrink.

use tripod_state::mindspore::Answer;
use tripod_state::mindspore::cluster::{ClusterState, Request, Scaling};

use crate::support::{Cluster, heard};

async fn scale_out(cluster: &Cluster, servers: u32) {
    let answer = cluster.ask(Request::ScaleOut { workers: 0, servers }).await;
    assert!(matches!(answer, Answer::Scaling { .. }), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn nodes_are_told_each_step_of_scaling_out_and_in() {
    let mut cluster = Cluster::of(1, 1).await;
    let mut nodes = cluster.start_all(&["w0", "s0"]).await;

    scale_out(&cluster, 1).await;
    cluster.settled().await;
    assert_eq!(heard(&nodes), [["scale-out 1+2"]; 2]);
    cluster.register("w0", 1).await;
    cluster.register("s0", 2).await;
    nodes.push(cluster.start("s1").await);
    cluster.settled().await;
    let of = |rank| vec![format!("metadata CLUSTER_SCALE_OUT rank={rank} 1+2: w0 s0 s1")];
    assert_eq!(heard(&nodes), [of(0), of(0), of(1)]);
    for node in ["w0", "s0", "s1"] {
        cluster.done(node, Scaling::Out).await;
    }
    cluster.settled().await;
    assert_eq!(heard(&nodes), [["scale_out_done"]; 3]);
    assert_eq!(cluster.view().state, ClusterState::Ready);

    let answer = cluster.ask(Request::ScaleIn { nodes: vec!["s1".into()] }).await;
    assert!(matches!(answer, Answer::Scaling { .. }));
    cluster.settled().await;
    assert_eq!(heard(&nodes), [["scale-in 1+1"], ["scale-in 1+1"], ["scale-in 1+1 leave"]]);
    cluster.register("w0", 1).await;
    cluster.register("s0", 2).await;
    cluster.settled().await;
    let of = |rank| vec![format!("metadata CLUSTER_SCALE_IN rank={rank} 1+1: w0 s0")];
    assert_eq!(heard(&nodes), [of(0), of(0), of(-1)], "who leaves is told, and says nothing to it");
    for node in ["s1", "w0", "s0"] {
        cluster.done(node, Scaling::In).await;
    }
    cluster.settled().await;
    assert_eq!(heard(&nodes), [vec!["scale_in_done"], vec!["scale_in_done"], vec![]]);
}

#[tokio::test(start_paused = true)]
async fn scaling_out_that_is_taken_back_is_told_as_scaling_to_what_was_before() {
    let mut cluster = Cluster::of(0, 2).await;
    let nodes = cluster.start_all(&["s0", "s1"]).await;
    scale_out(&cluster, 3).await;
    cluster.settled().await;
    assert_eq!(heard(&nodes), [["scale-out 0+5"]; 2]);
    assert_eq!(cluster.ask(Request::Abort).await, Answer::Noted);
    cluster.register("s0", 1).await;
    cluster.register("s1", 2).await;
    cluster.settled().await;
    let of = |rank| vec![format!("metadata CLUSTER_SCALE_OUT rank={rank} 0+2: s0 s1")];
    let mut told = heard(&nodes);
    // All versions report that they are done, or need not.
    for told in &mut told {
        told.retain(|words| words != "scale_out_done");
    }
    assert_eq!(told, [of(0), of(1)]);
    assert_eq!(cluster.view().state, ClusterState::Ready);
}
