//! What a cluster costs that does nothing: a figure of release builds, which no change needs. To look at it:
//!
//! ```text
//! cargo test --release -p tripod -p tripod-chaos --test idle -- --ignored --nocapture
//! ```

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

use std::time::{Duration, Instant};

use tripod_processes::cluster::{Cluster, ClusterOptions};

/// Of one core.
const LIMIT_PERCENT: f64 = 3.0;
const WINDOW: Duration = Duration::from_secs(5);
const WINDOWS: usize = 3;
const MOVES_MAX: usize = 5;

/// The share of a core that `node` uses in one window.
async fn load_percent(cluster: &Cluster, node: u64) -> f64 {
    let process = cluster.process(node).unwrap();
    let (begin, used) = (Instant::now(), process.cpu_time().unwrap());
    // What is measured is the passing of time itself; nothing is waited for.
    tokio::time::sleep(WINDOW).await;
    let used = process.cpu_time().unwrap() - used;
    100.0 * used.as_secs_f64() / begin.elapsed().as_secs_f64()
}

#[tokio::test]
#[ignore = "a figure of release builds"]
async fn an_idle_leader_with_a_dead_follower_uses_less_than_three_percent_of_a_core() {
    let mut cluster = Cluster::start(ClusterOptions::tripod().unwrap()).await.unwrap();
    let leader = cluster.wait_for_leader().await.unwrap();
    let follower = cluster.ids().find(|node| *node != leader).unwrap();
    cluster.kill(follower).unwrap();
    cluster.wait_until_ready().await.unwrap();

    let mut moved = 0;
    let mut loads = loop {
        let leader = cluster.wait_for_leader().await.unwrap();
        let mut loads = Vec::new();
        for _ in 0..WINDOWS {
            loads.push(load_percent(&cluster, leader).await);
        }
        // A machine that pauses elects another leader; then that one is measured.
        if cluster.wait_for_leader().await.unwrap() == leader {
            break loads;
        }
        moved += 1;
        assert!(moved < MOVES_MAX, "leadership moves again and again");
    };
    loads.sort_by(f64::total_cmp);
    let median = loads[WINDOWS / 2];
    println!("an idle leader with a dead follower: {median:.1} % of a core, windows {loads:.1?}");
    assert!(median > 0.0, "a leader that sends heartbeats uses some time: {loads:?}");
    assert!(median < LIMIT_PERCENT, "{median:.1} % of a core; all windows: {loads:.1?}");
}
