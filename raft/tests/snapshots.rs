//! A node that lacks what the others have purged gets the whole state as a file.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod common;

use std::sync::atomic::Ordering;

use common::{Cluster, assert_same_states, barrier, create_job, eventually, level_raised, local, write};
use tripod_raft::Options;
use tripod_state::State;
use tripod_state::ids::LogIndex;

fn often(options: &mut Options) {
    options.snapshot_every_entries = 100;
    options.keep_entries = 10;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_far_behind_catches_up_by_snapshot() {
    let mut cluster = Cluster::start_with(3, often).await;
    let leader = cluster.leader().await;
    let scope = create_job(cluster.node(leader)).await;
    let behind = cluster.follower().await;
    cluster.stop_node(behind).await;
    let missed = cluster.heard[usize::try_from(behind - 1).unwrap()].replaced.load(Ordering::Relaxed);
    let leader = cluster.leader().await;
    let value = vec![9; 20_000];
    for number in 0..400 {
        write(cluster.node(leader), scope, &format!("key-{number}"), &value).await;
    }
    eventually("a log that begins behind what the follower has", || {
        (cluster.node(leader).status().purged > LogIndex(200)).then_some(())
    })
    .await;

    cluster.start_node(behind).await.unwrap();
    barrier(cluster.node(behind)).await;
    assert_eq!(local(cluster.node(behind), scope, "key-399").unwrap(), value);
    let replaced = cluster.heard[usize::try_from(behind - 1).unwrap()].replaced.load(Ordering::Relaxed);
    assert!(replaced > missed, "the follower caught up, but not by snapshot");
    let leader = cluster.leader().await;
    assert_same_states(&[leader, behind].map(|node| cluster.node(node))).await;

    let unfinished = std::fs::read_dir(cluster.data(behind).join("snapshots")).unwrap();
    let unfinished = unfinished.filter(|file| {
        let path = file.as_ref().unwrap().path();
        path.extension().is_some_and(|extension| extension != "snap")
    });
    assert_eq!(unfinished.count(), 0);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_begins_from_the_newest_whole_snapshot() {
    let mut cluster = Cluster::start_with(1, often).await;
    cluster.leader().await;
    let scope = create_job(cluster.node(1)).await;
    for number in 0..250 {
        write(cluster.node(1), scope, &format!("key-{number}"), b"x").await;
    }
    eventually("two snapshots", || (cluster.node(1).status().snapshot > LogIndex(150)).then_some(())).await;
    level_raised(&cluster).await;
    let digest = cluster.node(1).read(State::digest);
    cluster.stop_node(1).await;

    // What a crash leaves behind.
    let snapshots = cluster.data(1).join("snapshots");
    std::fs::write(snapshots.join("incoming-0.part"), b"half").unwrap();
    std::fs::write(snapshots.join("99999999999999999999-1.snap"), b"no trailer").unwrap();
    cluster.start_node(1).await.unwrap();
    barrier(cluster.node(1)).await;
    assert_eq!(cluster.node(1).read(State::digest), digest);
    assert!(!snapshots.join("incoming-0.part").exists());
    cluster.stop().await;
}
