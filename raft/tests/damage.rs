//! Damaged files of a node: it starts with everything that it had, or it does not start and says why.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod common;

use std::fs;
use std::path::PathBuf;

use common::{Cluster, barrier, create_job, eventually, hooks, write};
use tripod_proto::code::Code;
use tripod_raft::{Handle, Options, StartError};
use tripod_state::State;
use tripod_state::ids::{LogIndex, NodeId};

/// A stopped node with two snapshots, and the digest of its state.
async fn stopped(keep_entries: u64) -> (Cluster, u64) {
    let mut cluster = Cluster::start_with(1, |options| {
        options.snapshot_every_entries = 50;
        options.keep_entries = keep_entries;
    })
    .await;
    cluster.leader().await;
    let scope = create_job(cluster.node(1)).await;
    for number in 0..130 {
        write(cluster.node(1), scope, &format!("key-{number}"), b"x").await;
    }
    eventually("two snapshots", || (snapshots(&cluster).len() == 2).then_some(())).await;
    if keep_entries == 0 {
        eventually("a purge behind the older snapshot", || {
            (cluster.node(1).status().purged > LogIndex(60)).then_some(())
        })
        .await;
    }
    let digest = cluster.node(1).read(State::digest);
    cluster.stop_node(1).await;
    (cluster, digest)
}

/// Complete snapshots, oldest first.
fn snapshots(cluster: &Cluster) -> Vec<PathBuf> {
    let directory = cluster.data(1).join("snapshots");
    let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "snap")).collect();
    files.sort();
    files
}

fn damage(path: &PathBuf) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

async fn start(options: &Options) -> Result<Handle, StartError> {
    Handle::start(options.clone(), hooks(NodeId(1), &std::sync::Arc::default())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_newest_snapshot_is_made_good_by_the_older_one_and_the_log() {
    let (mut cluster, digest) = stopped(10_000).await;
    damage(snapshots(&cluster).last().unwrap());
    cluster.start_node(1).await.unwrap();
    barrier(cluster.node(1)).await;
    assert_eq!(cluster.node(1).read(State::digest), digest);
    cluster.stop_node(1).await;

    // The log has everything, so nothing is lost without any.
    snapshots(&cluster).iter().for_each(|path| fs::remove_file(path).unwrap());
    cluster.start_node(1).await.unwrap();
    barrier(cluster.node(1)).await;
    assert_eq!(cluster.node(1).read(State::digest), digest);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_the_log_cannot_make_good_refuses_the_start() {
    let (cluster, _) = stopped(0).await;
    damage(snapshots(&cluster).last().unwrap());
    for left in [1, 0] {
        let Err(error) = start(&cluster.options[0]).await else { panic!("started with {left} snapshots") };
        let text = error.to_string();
        let data = cluster.data(1).display().to_string();
        assert!(text.starts_with("T3105 snapshot-damaged"), "{text}");
        assert!(text.contains(&format!("run `mv {data} {data}.damaged`")), "{text}");
        snapshots(&cluster).iter().for_each(|path| fs::remove_file(path).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_of_another_cluster_refuses_the_start() {
    let (mine, _) = stopped(0).await;
    let mut other = Cluster::start_with(1, |options| {
        options.cluster_id = "another".into();
        options.snapshot_every_entries = 50;
    })
    .await;
    other.leader().await;
    let scope = create_job(other.node(1)).await;
    for number in 0..70 {
        write(other.node(1), scope, &format!("key-{number}"), b"x").await;
    }
    eventually("a snapshot", || (!snapshots(&other).is_empty()).then_some(())).await;
    other.stop_node(1).await;
    fs::copy(snapshots(&other).last().unwrap(), snapshots(&mine).last().unwrap()).unwrap();
    let Err(error) = start(&mine.options[0]).await else { panic!("started with a foreign snapshot") };
    let text = error.to_string();
    assert!(text.contains("T3105 snapshot-damaged") || text.contains("is of cluster another"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_in_the_identity_is_harmless_or_noticed() {
    let (cluster, _) = stopped(10_000).await;
    let file = cluster.data(1).join("identity.json");
    let whole = fs::read(&file).unwrap();
    let mut refused = 0;
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&file, &flipped).unwrap();
        match start(&cluster.options[0]).await {
            Ok(node) => {
                // White space, or an older format: it is the same owner.
                assert_eq!(node.status().node, NodeId(1));
                node.shutdown().await;
            }
            Err(error) => {
                let text = error.to_string();
                let of_identity = |code: Code| code.slug().starts_with("identity-");
                assert!(Code::find(&text).is_some_and(of_identity), "byte {at}: {text}");
                refused += 1;
            }
        }
    }
    assert!(refused > whole.len() / 2, "{refused} of {}", whole.len());
    for left in [&whole[..0], &whole[..whole.len() / 2]] {
        fs::write(&file, left).unwrap();
        let Err(error) = start(&cluster.options[0]).await else { panic!("started with half an identity") };
        assert!(error.to_string().starts_with("T4101 identity-unreadable"), "{error}");
    }
    // The log knows whose it is, so the file can be made anew.
    fs::remove_file(&file).unwrap();
    start(&cluster.options[0]).await.unwrap().shutdown().await;
    assert_eq!(fs::read(&file).unwrap(), whole);
}
