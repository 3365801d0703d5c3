//! Who is silent, who is heard again, and what comes of it.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;
use tripod_gateway::Channel;
use tripod_mindspore::Patience;
use tripod_state::mindspore::Answer;
use tripod_state::mindspore::cluster::{ClusterState, Request};

use crate::played::Played;
use crate::support::{Cluster, heard};

const PATIENCE: Patience = Patience { ttl: Duration::from_secs(30), failover_min: Duration::from_secs(60) };
/// As nodes beat.
const BEAT: Duration = Duration::from_secs(3);

/// A sign of life as a node of Tripod tells its leader; `None`: it does not know which process it is.
async fn beat(cluster: &Cluster, node: &str, knows_process: bool) {
    let node = cluster.node(node);
    let small = |number: u64| u8::try_from(number).ok().filter(|number| *number < 128).unwrap();
    let (job, member) = (small(cluster.scope.job.0), small(node.member.0));
    let process = if knows_process { vec![8, small(node.incarnation.0)] } else { Vec::new() };
    let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
    let beat = [&[8, job, 16, member, 26, length(&process)][..], &process].concat();
    let report = Bytes::from([&[10, length(&beat)][..], &beat].concat());
    let answer = cluster.gateway.ask_leader(Channel::MINDSPORE, &report).await.unwrap();
    assert_eq!(&answer[..], [8, 1], "one is heard");
}

async fn beats(cluster: &Cluster, nodes: &[&str], count: usize) {
    for round in 0..count {
        for node in nodes {
            beat(cluster, node, round % 2 == 0).await;
        }
        sleep(BEAT).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_silent_for_30_s_counts_as_dead_until_it_is_heard() {
    let mut cluster = Cluster::within(1, 1, PATIENCE).await;
    let _nodes = cluster.start_all(&["w0", "s0"]).await;
    // For longer than the time that everybody has after an election.
    beats(&cluster, &["w0", "s0"], 30).await;
    assert_eq!(cluster.view().dead, 0);
    beats(&cluster, &["w0"], 8).await;
    assert_eq!(cluster.view().dead, 0, "27 s are no silence");
    beats(&cluster, &["w0"], 3).await;
    assert!(!cluster.node("s0").is_alive);
    assert_eq!(cluster.view().state, ClusterState::Ready, "its place waits for it");
    beats(&cluster, &["w0", "s0"], 2).await;
    assert!(cluster.node("s0").is_alive);
}

#[tokio::test(start_paused = true)]
async fn when_nobody_comes_in_its_place_the_others_hear_that_it_is_lost() {
    let mut cluster = Cluster::within(1, 1, PATIENCE).await;
    let _nodes = cluster.start_all(&["w0", "s0"]).await;
    beats(&cluster, &["w0", "s0"], 30).await;
    beats(&cluster, &["w0"], 12).await;
    assert_eq!((cluster.view().dead, cluster.view().state), (1, ClusterState::Ready));
    // Two minutes, and time for the leader to look.
    beats(&cluster, &["w0"], 42).await;
    assert_eq!(cluster.view().state, ClusterState::NodeTimeout);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_not_complete_in_time_says_so() {
    let mut cluster = Cluster::within(1, 1, PATIENCE).await;
    let _node = cluster.start("w0").await;
    beats(&cluster, &["w0"], 99).await;
    assert_eq!(cluster.view().state, ClusterState::Starting);
    beats(&cluster, &["w0"], 3).await;
    assert_eq!(cluster.view().state, ClusterState::NodeTimeout);
}

#[tokio::test(start_paused = true)]
async fn scaling_out_for_which_nobody_comes_is_taken_back_after_five_minutes_and_can_begin_again() {
    let mut cluster = Cluster::within(1, 1, PATIENCE).await;
    let nodes = cluster.start_all(&["w0", "s0"]).await;
    for round in 0..2 {
        let answer = cluster.ask(Request::ScaleOut { workers: 0, servers: 1 }).await;
        assert!(matches!(answer, Answer::Scaling { .. }), "{round}: {answer:?}");
        cluster.settled().await;
        cluster.register("w0", 1).await;
        cluster.register("s0", 2).await;
        beats(&cluster, &["w0", "s0"], 98).await;
        assert_eq!((cluster.view().state, cluster.view().expected.servers), (ClusterState::ScaleOut, 2));
        beats(&cluster, &["w0", "s0"], 5).await;
        cluster.settled().await;
        assert_eq!((cluster.view().state, cluster.view().expected.servers), (ClusterState::Ready, 1));
        for told in heard(&nodes) {
            assert!(told[0] == "scale-out 1+2" && told[1].ends_with(" rank=0 1+1: w0 s0"), "{told:?}");
        }
    }
}

/// A server that has finished is silent until all have, and the worker was told so.
async fn ended_while_a_server_was_silent() -> (Cluster, Vec<Played>) {
    let mut cluster = Cluster::within(1, 1, PATIENCE).await;
    let nodes = cluster.start_all(&["w0", "s0"]).await;
    beats(&cluster, &["w0", "s0"], 30).await;
    cluster.finish("s0").await;
    beats(&cluster, &["w0"], 11).await;
    assert!(!cluster.node("s0").is_alive);
    cluster.finish("w0").await;
    cluster.settled().await;
    assert_eq!(cluster.view().state, ClusterState::Exit);
    assert_eq!(heard(&nodes), [vec!["finish"], vec![]]);
    (cluster, nodes)
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_silent_when_all_had_finished_is_told_so_when_it_is_heard() {
    let (cluster, nodes) = ended_while_a_server_was_silent().await;
    sleep(Duration::from_secs(30)).await;
    beats(&cluster, &["s0"], 2).await;
    assert!(cluster.node("s0").is_alive);
    cluster.settled().await;
    assert_eq!(heard(&nodes), [vec![], vec!["finish"]]);
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_hears_such_a_node_too() {
    let (cluster, nodes) = ended_while_a_server_was_silent().await;
    sleep(Duration::from_secs(120)).await;
    beats(&cluster, &["s0"], 2).await;
    assert!(!cluster.node("s0").is_alive, "nobody is watched for ever");
    cluster.backend.depose();
    sleep(Duration::from_secs(1)).await;
    cluster.backend.elect();
    sleep(Duration::from_secs(1)).await;
    beats(&cluster, &["s0"], 2).await;
    cluster.settled().await;
    assert_eq!(heard(&nodes), [vec![], vec!["finish"]]);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_dead_because_the_leader_is_a_new_one() {
    let mut cluster = Cluster::within(1, 1, PATIENCE).await;
    let _nodes = cluster.start_all(&["w0", "s0"]).await;
    beats(&cluster, &["w0", "s0"], 30).await;
    sleep(Duration::from_secs(25)).await;
    cluster.backend.depose();
    sleep(Duration::from_secs(60)).await;
    cluster.backend.elect();
    sleep(Duration::from_secs(50)).await;
    assert_eq!(cluster.view().dead, 0, "nodes have time to find another coordinator");
    sleep(Duration::from_secs(20)).await;
    assert_eq!(cluster.view().dead, 2);
}
