//! The cluster of real processes, with the real binary.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

use bytes::Bytes;
use tripod_load::connect;
use tripod_load::system::{Client, Freshness};
use tripod_processes::cluster::{Cluster, ClusterOptions};

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
