//! What a cluster does while nothing happens.

use std::time::Duration;

use crate::common::{Cluster, create_job, each_seed, level_raised};

/// How long it is watched.
const WATCHED: Duration = Duration::from_secs(5);
/// How often the others may try to reach a dead one in that time: each about ten times a second.
const KNOCKS_MAX: u64 = 120;

/// How often the tasks of this run, which are all of the cluster, have been polled.
fn polls() -> u64 {
    tokio::runtime::Handle::current().metrics().worker_poll_count(0)
}

/// openraft alone retries a dead follower without a pause, which takes a whole core.
#[test]
fn a_dead_follower_does_not_keep_the_leader_busy() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        create_job(cluster.node(leader)).await;
        level_raised(&cluster).await;
        let dead = cluster.follower().await;
        let before = polls();
        tokio::time::sleep(WATCHED).await;
        let whole = polls() - before;

        cluster.stop_node(dead).await;
        cluster.leader().await;
        let (before, knocks) = (polls(), cluster.meter(dead).knocks());
        tokio::time::sleep(WATCHED).await;
        let (polled, knocked) = (polls() - before, cluster.meter(dead).knocks() - knocks);
        assert!(polled < whole, "{polled} polls with a dead follower, {whole} while it lived");
        assert!(knocked <= KNOCKS_MAX, "a dead follower was called {knocked} times in {WATCHED:?}");
        cluster.stop().await;
    });
}
