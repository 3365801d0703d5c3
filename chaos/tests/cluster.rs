//! The cluster of real processes, with the real binary.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

use bytes::Bytes;
use futures::future::join_all;
use tripod_calls::Multiplexed;
use tripod_load::connect;
use tripod_load::system::{Client, Freshness};
use tripod_processes::cluster::{Cluster, ClusterOptions, open_streams, takes_streams};
use tripod_proto::tripod::v1::PutRequest;
use tripod_proto::tripod::v1::kv_client::KvClient;

fn client(cluster: &Cluster, node: u64) -> Client {
    cluster.system().client(connect::lazy(&cluster.endpoint(node)).unwrap())
}

#[tokio::test]
async fn nodes_die_and_come_back_with_their_data() {
    let mut cluster = Cluster::start(ClusterOptions::tripod().unwrap()).await.unwrap();
    let leader = cluster.wait_for_leader().await.unwrap();
    client(&cluster, leader).put("key".into(), Bytes::from_static(b"value")).await.unwrap();

    cluster.kill(leader).unwrap();
    assert!(!cluster.running().contains(&leader));
    assert!(cluster.kill(leader).is_err(), "a dead node cannot be killed again");
    let next = cluster.wait_for_leader().await.unwrap();
    assert_ne!(next, leader);
    cluster.restart(leader).unwrap();
    assert!(cluster.restart(leader).is_err(), "a running node is not started twice");
    cluster.wait_until_ready().await.unwrap();

    cluster.kill_all().unwrap();
    assert!(cluster.running().is_empty());
    for node in cluster.ids() {
        cluster.restart(node).unwrap();
    }
    cluster.wait_until_ready().await.unwrap();
    for node in cluster.ids() {
        let found = client(&cluster, node).get("key".into(), Freshness::Linearizable).await.unwrap();
        assert_eq!(found.as_deref(), Some(b"value".as_slice()), "through node {node}");
    }
}

#[tokio::test]
async fn a_paused_leader_is_replaced_and_a_terminated_node_ends_well() {
    let mut cluster = Cluster::start(ClusterOptions::tripod().unwrap()).await.unwrap();
    let leader = cluster.wait_for_leader().await.unwrap();
    cluster.pause(leader).unwrap();
    // The paused node cannot say that it leads, so whoever says so is another one.
    let next = cluster.wait_for_leader().await.unwrap();
    assert_ne!(next, leader);
    cluster.resume(leader).unwrap();
    cluster.wait_until_ready().await.unwrap();
    assert!(cluster.terminate(next).await.unwrap().success());
}

#[tokio::test]
async fn a_node_that_does_not_start_is_told_with_its_log() {
    let mut options = ClusterOptions::tripod().unwrap().with_args(["--no-such-flag"]);
    // A failed start keeps its logs; here they go with the test.
    let data = tempfile::tempdir().unwrap();
    options.data = Some(data.path().to_owned());
    let refused = Cluster::start(options).await.err().expect("the flag is unknown");
    assert!(refused.to_string().contains("--no-such-flag"), "{refused}");
}

/// Twice what a node has under way of clients' commands: as many as a stream may send at a time, so half of them wait for
/// their turn.
const PUTS_AT_A_TIME: usize = 1_024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_stream_writes_enters_the_log_in_its_order_although_much_of_it_waits_for_its_turn() {
    // Slower than the default: an election on a loaded machine is not what is tested.
    let timing = ["--raft-heartbeat-ms=200", "--election-min-ms=2000", "--election-max-ms=4000"];
    let mut cluster = Cluster::start(ClusterOptions::tripod().unwrap().with_args(timing)).await.unwrap();
    let leader = cluster.wait_for_leader().await.unwrap();
    let follower = cluster.ids().find(|node| *node != leader).unwrap();
    for node in [leader, follower] {
        let channel = connect::lazy(&cluster.endpoint(node)).unwrap();
        let calls = KvClient::new(Multiplexed::new(connect::stream(&channel).unwrap()));
        let put = |number: usize| {
            let mut calls = calls.clone();
            let put =
                PutRequest { key: format!("order/{number}"), value: "x".into(), ..PutRequest::default() };
            async move { calls.put(put).await.unwrap().into_inner().index }
        };
        // The node has its session.
        put(0).await;
        for _ in 0..8 {
            let indexes = join_all((0..PUTS_AT_A_TIME).map(put)).await;
            let overtaken = indexes.windows(2).position(|pair| pair[0] > pair[1]);
            assert_eq!(overtaken, None, "through node {node}, which {leader} leads: {indexes:?}");
        }
        let open = open_streams(&cluster.http_endpoint(node)).await.unwrap();
        assert!(open > 0 && takes_streams(&cluster.endpoint(node)).await.unwrap(), "{open} are open");
    }
}
