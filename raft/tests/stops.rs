//! A planned stop takes no longer than it must.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod common;

use std::time::{Duration, Instant};

use common::{Cluster, create_job, write};

/// A node waits this long for calls of its peers that do not end. A stop that does so takes longer in all.
const DRAIN_DEADLINE: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_does_not_wait_for_peers_that_keep_their_connections() {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    let scope = create_job(cluster.node(leader)).await;
    let follower = cluster.follower().await;
    // The leader appends to the follower, and the follower forwards to the leader.
    let index = write(cluster.node(follower), scope, "key", b"x").await;
    // Now the leader has nothing more to say: its stream of appends stays open and silent.
    for node in cluster.running() {
        cluster.node(node).wait_applied(index).await.unwrap();
    }
    let begun = Instant::now();
    cluster.stop_node(follower).await;
    let took = begun.elapsed();
    assert!(took < DRAIN_DEADLINE, "a follower stopped in {took:?}");
    cluster.stop().await;
}
