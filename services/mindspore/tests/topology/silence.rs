//! Who is silent, as the others are told.

use std::time::Duration;

use tokio::time::sleep;

use crate::support::{Cluster, of_2_10};

/// As real workers beat.
const BEAT: Duration = Duration::from_secs(3);

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_silent_for_30_s_counts_as_abnormal_until_it_is_heard() {
    let cluster = Cluster::of(2).await;
    let (mut one, mut two) = (cluster.connect(), cluster.connect());
    one.register(&of_2_10("0")).await;
    two.register(&of_2_10("1")).await;
    // For longer than the time that everybody has after an election.
    for _ in 0..25 {
        assert_eq!(one.beat("0").await.abnormal_nodes_num, 0);
        two.beat("1").await;
        sleep(BEAT).await;
    }
    for _ in 0..9 {
        assert_eq!(one.beat("0").await.abnormal_nodes_num, 0, "27 s are no silence");
        sleep(BEAT).await;
    }
    sleep(BEAT).await;
    assert_eq!(one.beat("0").await.abnormal_nodes_num, 1);
    two.beat("1").await;
    sleep(BEAT).await;
    assert_eq!(one.beat("0").await.abnormal_nodes_num, 0, "it is back");
    for _ in 0..12 {
        one.beat("0").await;
        sleep(BEAT).await;
    }
    assert_eq!(one.beat("0").await.abnormal_nodes_num, 1, "another process begins for it");
    assert!(two.register(&of_2_10("1")).await.success);
    for _ in 0..9 {
        assert_eq!(one.beat("0").await.abnormal_nodes_num, 0, "and has as much time as every other");
        sleep(BEAT).await;
    }
    assert_eq!(cluster.view().registered, 2, "and has its place");
}

#[tokio::test(start_paused = true)]
async fn nobody_is_silent_because_the_leader_is_a_new_one() {
    let cluster = Cluster::of(2).await;
    let (mut one, mut two) = (cluster.connect(), cluster.connect());
    one.register(&of_2_10("0")).await;
    two.register(&of_2_10("1")).await;
    for _ in 0..25 {
        one.beat("0").await;
        two.beat("1").await;
        sleep(BEAT).await;
    }
    sleep(Duration::from_secs(25)).await;
    cluster.backend.depose();
    sleep(Duration::from_secs(60)).await;
    cluster.backend.elect();
    sleep(Duration::from_secs(50)).await;
    assert_eq!(cluster.view().silent, 0, "nodes have time to find another coordinator");
    sleep(Duration::from_secs(20)).await;
    assert_eq!(cluster.view().silent, 2);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_not_complete_in_time_has_failed() {
    let cluster = Cluster::of(2).await;
    let mut one = cluster.connect();
    one.register(&of_2_10("0")).await;
    for _ in 0..200 {
        assert_eq!(one.beat("0").await.topo_state, 0);
        sleep(BEAT - Duration::from_millis(30)).await;
    }
    sleep(Duration::from_secs(10)).await;
    assert_eq!(one.beat("0").await.topo_state, 2);
}
