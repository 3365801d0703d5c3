//! Disks that are full and are freed.

use std::time::Duration;

use tripod_processes::cluster::ClusterOptions;
use tripod_processes::fault::storage::{FileSystem, Witness};

use super::{assert_kept, start_on_disks, tail, writes_go_on};

#[tokio::test(flavor = "multi_thread")]
async fn one_full_disk_stops_nobody_else_and_frees_itself() {
    let options = ClusterOptions::tripod().unwrap();
    // All that is written here, as a snapshot and in the journal, leaves the others more than their reserve of 24 MiB and
    // room for another snapshot: a writer that had no answer in time goes on with other keys, so all of it may stay.
    let Some((mut cluster, disks)) = start_on_disks(options, FileSystem::Tmpfs, 128 << 20).await else {
        return;
    };
    let leader = cluster.wait_for_leader().await.unwrap();
    let follower = cluster.ids().find(|node| *node != leader).unwrap();
    let witness = Witness::start(&cluster, "full", 8, 4096);
    writes_go_on(&witness, 50).await;
    disks.of(follower).unwrap().fill(0).unwrap();
    // More than two segments of the journal, so that the follower wants a file that it cannot have.
    writes_go_on(&witness, 4_000).await;
    disks.of(follower).unwrap().free().unwrap();
    writes_go_on(&witness, 50).await;
    assert_eq!(cluster.running().len(), 3, "a node ended: {}", tail(&cluster, follower));
    cluster.wait_until_ready().await.unwrap();
    assert_kept(&witness.verify(&mut cluster).await.unwrap());
}

/// A look at what happens when everybody's disk is full.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a look"]
async fn all_disks_full() {
    let options = ClusterOptions::tripod().unwrap();
    let Some((mut cluster, disks)) = start_on_disks(options, FileSystem::Ext4, 64 << 20).await else {
        return;
    };
    let witness = Witness::start(&cluster, "full", 8, 4096);
    writes_go_on(&witness, 50).await;
    for node in cluster.ids() {
        disks.of(node).unwrap().fill(0).unwrap();
    }
    let more = witness.wait_for_more(5_000, Duration::from_secs(20)).await;
    println!("full: {more:?}; running {:?}", cluster.running());
    for node in cluster.ids() {
        println!(
            "--- node {node}, {:?} bytes free\n{}",
            disks.of(node).unwrap().free_bytes(),
            tail(&cluster, node)
        );
        let _ = cluster.kill(node);
        std::fs::write(cluster.root().join(format!("node-{node}.log")), "").unwrap();
        cluster.restart(node).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    println!("started again while full: running {:?}", cluster.running());
    for node in cluster.ids() {
        println!("--- node {node}\n{}", tail(&cluster, node));
        disks.of(node).unwrap().free().unwrap();
        if !cluster.running().contains(&node) {
            let _ = cluster.kill(node);
            cluster.restart(node).unwrap();
        }
    }
    cluster.wait_until_ready().await.unwrap();
    writes_go_on(&witness, 50).await;
    assert_kept(&witness.verify(&mut cluster).await.unwrap());
}
