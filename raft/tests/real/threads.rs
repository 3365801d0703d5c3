//! Real nodes whose threads are all at work: runtimes, writers, flushes, and the sockets between them. A simulation has
//! one thread.

use tripod_state::ids::LogIndex;

use crate::common::{Cluster, barrier, create_job, write};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_concurrent_proposals_through_a_follower_are_all_applied_once() {
    let cluster = Cluster::start_real(3, |_| {}).await;
    let follower = cluster.follower().await;
    let scope = create_job(cluster.node(follower)).await;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..500_u64 {
        let node = cluster.node(follower).clone();
        calls.spawn(async move { write(&node, scope, &format!("key-{number}"), &[7; 256]).await });
    }
    let mut indexes: Vec<LogIndex> = calls.join_all().await;
    indexes.sort();
    indexes.dedup();
    assert_eq!(indexes.len(), 500, "two commands came back with one index");
    barrier(cluster.node(follower)).await;
    let keys = cluster.node(follower).read(|state| state.jobs()[0].keys);
    assert_eq!(keys, 500);
    cluster.stop().await;
}
