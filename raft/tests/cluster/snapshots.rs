//! A node that lacks what the others have purged gets the whole state as a file.

use std::sync::atomic::Ordering;

use tripod_raft::Options;
use tripod_state::State;
use tripod_state::ids::LogIndex;
use tripod_wait::until;

use crate::common::{
    Cluster, assert_same_states, barrier, create_job, each_seed, level_raised, local, write, write_keys,
};

fn often(options: &mut Options) {
    options.snapshot_every_entries = 100;
    options.keep_entries = 10;
}

#[test]
fn a_follower_far_behind_catches_up_by_snapshot() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start_with(3, often).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        let behind = cluster.follower().await;
        cluster.stop_node(behind).await;
        let missed = cluster.heard(behind).replaced.load(Ordering::Relaxed);
        let leader = cluster.leader().await;
        let value = vec![9; 20_000];
        for number in 0..400 {
            write(cluster.node(leader), scope, &format!("key-{number}"), &value).await;
        }
        until("a log that begins behind what the follower has", || {
            (cluster.node(leader).status().purged > LogIndex(200)).then_some(())
        })
        .await;

        cluster.start_node(behind).await.unwrap();
        barrier(cluster.node(behind)).await;
        assert_eq!(local(cluster.node(behind), scope, "key-399").unwrap(), value);
        let replaced = cluster.heard(behind).replaced.load(Ordering::Relaxed);
        assert!(replaced > missed, "the follower caught up, but not by snapshot");
        let leader = cluster.leader().await;
        assert_same_states(&[leader, behind].map(|node| cluster.node(node))).await;

        let unfinished = [".part", ".tmp"];
        let files = cluster.disk(behind).files();
        assert!(
            !files.keys().any(|name| unfinished.iter().any(|end| name.ends_with(end))),
            "{:?}",
            files.keys()
        );
        cluster.stop().await;
    });
}

#[test]
fn a_restart_begins_from_the_newest_whole_snapshot() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start_with(1, often).await;
        cluster.leader().await;
        let scope = create_job(cluster.node(1)).await;
        write_keys(cluster.node(1), scope, 250).await;
        until("two snapshots", || (cluster.node(1).status().snapshot > LogIndex(150)).then_some(())).await;
        level_raised(&cluster).await;
        let digest = cluster.node(1).read(State::digest);
        cluster.stop_node(1).await;

        // What a crash leaves behind.
        let disk = cluster.disk(1);
        disk.put_file("incoming-0.part", Some(b"half".to_vec()));
        disk.put_file("99999999999999999999-1.snap", Some(b"no trailer".to_vec()));
        cluster.start_node(1).await.unwrap();
        barrier(cluster.node(1)).await;
        assert_eq!(cluster.node(1).read(State::digest), digest);
        assert!(!cluster.has_file(1, "incoming-0.part"));
        cluster.stop().await;
    });
}
