//! Damaged snapshots of a node: it starts with everything that it had, or it does not start and says why.

use tripod_state::State;
use tripod_state::ids::LogIndex;
use tripod_wait::until;

use crate::common::{Cluster, barrier, create_job, each_seed, level_raised, write_keys};

/// A stopped node with two snapshots, and the digest of its state.
async fn stopped(keep_entries: u64) -> (Cluster, u64) {
    let mut cluster = Cluster::start_with(1, |options| {
        options.snapshot_every_entries = 50;
        options.keep_entries = keep_entries;
    })
    .await;
    cluster.leader().await;
    let scope = create_job(cluster.node(1)).await;
    write_keys(cluster.node(1), scope, 130).await;
    until("two snapshots", || (snapshots(&cluster).len() == 2).then_some(())).await;
    if keep_entries == 0 {
        until("a purge behind the older snapshot", || {
            (cluster.node(1).status().purged > LogIndex(60)).then_some(())
        })
        .await;
    }
    level_raised(&cluster).await;
    let digest = cluster.node(1).read(State::digest);
    cluster.stop_node(1).await;
    (cluster, digest)
}

/// Names of complete snapshots, oldest first.
fn snapshots(cluster: &Cluster) -> Vec<String> {
    cluster.disk(1).files().into_keys().filter(|name| name.ends_with(".snap")).collect()
}

fn damage_newest(cluster: &Cluster) {
    let newest = snapshots(cluster).pop().unwrap();
    let mut bytes = cluster.disk(1).files().remove(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    cluster.disk(1).put_file(&newest, Some(bytes));
}

fn remove_all(cluster: &Cluster) {
    snapshots(cluster).iter().for_each(|name| cluster.disk(1).put_file(name, None));
}

#[test]
fn a_damaged_newest_snapshot_is_made_good_by_the_older_one_and_the_log() {
    each_seed(0..3, async || {
        let (mut cluster, digest) = stopped(10_000).await;
        damage_newest(&cluster);
        cluster.start_node(1).await.unwrap();
        barrier(cluster.node(1)).await;
        assert_eq!(cluster.node(1).read(State::digest), digest);
        cluster.stop_node(1).await;

        // The log has everything, so nothing is lost without any.
        remove_all(&cluster);
        cluster.start_node(1).await.unwrap();
        barrier(cluster.node(1)).await;
        assert_eq!(cluster.node(1).read(State::digest), digest);
        cluster.stop().await;
    });
}

#[test]
fn a_snapshot_that_the_log_cannot_make_good_refuses_the_start() {
    each_seed(0..3, async || {
        let (mut cluster, _) = stopped(0).await;
        damage_newest(&cluster);
        for left in [1, 0] {
            let Err(error) = cluster.start_node(1).await else { panic!("started with {left} snapshots") };
            let text = error.to_string();
            let data = cluster.data(1).display().to_string();
            assert!(text.starts_with("T3105 snapshot-damaged"), "{text}");
            assert!(text.contains(&format!("run `mv {data} {data}.damaged`")), "{text}");
            remove_all(&cluster);
        }
    });
}

#[test]
fn a_snapshot_of_another_cluster_refuses_the_start() {
    each_seed(0..3, async || {
        let (mut mine, _) = stopped(0).await;
        let mut other = Cluster::start_with(1, |options| {
            options.cluster_id = "another".into();
            options.snapshot_every_entries = 50;
        })
        .await;
        other.leader().await;
        let scope = create_job(other.node(1)).await;
        write_keys(other.node(1), scope, 70).await;
        until("a snapshot", || (!snapshots(&other).is_empty()).then_some(())).await;
        other.stop_node(1).await;
        let theirs = other.disk(1).files().remove(&snapshots(&other).pop().unwrap());
        mine.disk(1).put_file(&snapshots(&mine).pop().unwrap(), theirs);
        let Err(error) = mine.start_node(1).await else { panic!("started with a foreign snapshot") };
        let text = error.to_string();
        assert!(text.contains("T3105 snapshot-damaged") || text.contains("is of cluster another"), "{text}");
    });
}
