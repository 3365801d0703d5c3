//! A cluster is saved while it serves, and another one begins with what was saved: a file, and directories that are made of
//! it, which have their names only when they are whole.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tripod_raft::backup::{Plan, Restored, restore, verify};
use tripod_raft::{Handle, Options, ProposeError};
use tripod_state::Scope;
use tripod_state::ids::LogIndex;
use tripod_state::restore::Jobs;
use tripod_wait::until;

use crate::common::members::announcement;
use crate::common::{Cluster, Ground, barrier, create_job, local, propose, write};

/// Writes what a node saves to a file.
async fn save(node: &Handle, file: &Path) -> LogIndex {
    let mut saving = node.save_snapshot().unwrap();
    let mut bytes = Vec::new();
    while let Some(part) = saving.parts.recv().await {
        bytes.extend_from_slice(&part.unwrap());
    }
    fs::write(file, bytes).unwrap();
    saving.index
}

fn plan(file: &Path, options: &Options, jobs: Jobs) -> Plan {
    Plan {
        file: file.to_owned(),
        node: options.node,
        data: options.data.clone(),
        members: options.initial.clone(),
        name: "second".into(),
        jobs,
    }
}

/// Restores a file for so many nodes, none of which is started yet.
fn restored(file: &Path, count: u64) -> (Cluster, Vec<Restored>) {
    let mut cluster = Cluster::prepared(Ground::real(), count, |_| {});
    let restored = |options: &Options| restore(&plan(file, options, Jobs::Ended)).unwrap();
    let made: Vec<Restored> = cluster.options.iter().map(restored).collect();
    for (options, made) in cluster.options.iter_mut().zip(&made) {
        options.cluster_id = made.cluster_id.clone();
    }
    (cluster, made)
}

fn restored_note(cluster: &Cluster, node: u64) -> PathBuf {
    cluster.data(node).join("restored")
}

/// A cluster of three with a hundred keys, and the file of one of its followers.
async fn saved(directory: &TempDir) -> (Cluster, PathBuf, Scope) {
    let cluster = Cluster::start_real(3, |_| {}).await;
    let leader = cluster.leader().await;
    let scope = create_job(cluster.node(leader)).await;
    for number in 0..100 {
        write(cluster.node(leader), scope, &format!("key-{number}"), b"saved").await;
    }
    let follower = cluster.follower().await;
    let least = barrier(cluster.node(follower)).await;
    let file = directory.path().join("backup.snap");
    let index = save(cluster.node(follower), &file).await;
    assert!(index >= least);
    let contents = verify(&file).unwrap();
    assert_eq!((contents.index, contents.counts.keys, contents.voters.len()), (index, 100, 3));
    // The node goes on, and what comes now is not in the file.
    write(cluster.node(leader), scope, "late", b"lost").await;
    (cluster, file, scope)
}

async fn holds_what_was_saved(cluster: &Cluster, scope: Scope) {
    let leader = cluster.leader().await;
    for node in cluster.running() {
        barrier(cluster.node(node)).await;
        for number in 0..100 {
            let value = local(cluster.node(node), scope, &format!("key-{number}"));
            assert_eq!(value.as_deref(), Some(b"saved".as_slice()), "key-{number} on node {node}");
        }
        assert_eq!(local(cluster.node(node), scope, "late"), None);
    }
    let index = write(cluster.node(leader), scope, "new", b"written").await;
    assert!(index.0 > 1_000_000_000_000, "{index}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_saved_cluster_goes_on_as_one_node_and_as_three() {
    let directory = TempDir::new().unwrap();
    let (old, file, scope) = saved(&directory).await;
    old.stop().await;
    for count in [1, 3] {
        let (mut new, made) = restored(&file, count);
        assert!(made.windows(2).all(|pair| pair[0] == pair[1]));
        for node in 1..=count {
            assert!(restored_note(&new, node).exists());
            new.start_node(node).await.unwrap();
        }
        holds_what_was_saved(&new, scope).await;
        for node in 1..=count {
            until("a node that has joined", || (!restored_note(&new, node).exists()).then_some(())).await;
        }
        // And as any other cluster, after a stop.
        for node in 1..=count {
            new.stop_node(node).await;
        }
        for node in 1..=count {
            new.start_node(node).await.unwrap();
        }
        let leader = new.leader().await;
        barrier(new.node(leader)).await;
        assert_eq!(local(new.node(leader), scope, "new").as_deref(), Some(b"written".as_slice()));
        new.stop().await;
    }
}

/// Its disk is lost when the new cluster has long gone on. Whoever repeats the restoration gives it a log and a
/// vote, but not what it has acknowledged since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_restored_again_asks_the_others_before_it_votes() {
    let directory = TempDir::new().unwrap();
    let (old, file, scope) = saved(&directory).await;
    old.stop().await;
    let (mut new, _) = restored(&file, 3);
    for node in 1..=3 {
        new.start_node(node).await.unwrap();
    }
    let leader = new.leader().await;
    for node in 1..=3 {
        propose(new.node(leader), &announcement(node)).await;
    }
    write(new.node(leader), scope, "acknowledged", b"yes").await;
    let victim = new.follower().await;
    barrier(new.node(victim)).await;
    new.stop_node(victim).await;
    let data = new.data(victim);
    fs::remove_dir_all(&data).unwrap();
    let slot = usize::try_from(victim - 1).unwrap();
    restore(&plan(&file, &new.options[slot], Jobs::Ended)).unwrap();

    // With one other node it would be a majority; but that one cannot tell for all.
    let leader = new.leader().await;
    new.stop_node(leader).await;
    new.start_node(victim).await.unwrap();
    until("the note that its data was lost", || data.join("rejoining").exists().then_some(())).await;
    let read = tokio::time::timeout(std::time::Duration::from_secs(3), new.node(victim).read_barrier()).await;
    assert!(!matches!(read, Ok(Ok(_))), "two of three, one of which has forgotten, are no majority");
    new.start_node(leader).await.unwrap();
    let leader = new.leader().await;
    barrier(new.node(victim)).await;
    assert_eq!(local(new.node(victim), scope, "acknowledged").as_deref(), Some(b"yes".as_slice()));
    until("a node that votes again", || (!data.join("rejoining").exists()).then_some(())).await;
    write(new.node(leader), scope, "more", b"x").await;
    new.stop().await;
}

/// Peers of the two clusters at the same addresses refuse each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_the_old_cluster_is_no_node_of_the_new_one() {
    let directory = TempDir::new().unwrap();
    let (mut old, file, _) = saved(&directory).await;
    for node in 2..=3 {
        old.stop_node(node).await;
    }
    // The new node 2 has the old one's address: the old node 1 finds somebody there.
    let fresh = TempDir::new().unwrap();
    let mut options = old.options[1].clone();
    options.data = fresh.path().join("new-2");
    options.initial.retain(|member| member.node == options.node);
    let made = restore(&plan(&file, &options, Jobs::Ended)).unwrap();
    old.options[1] = options;
    let wrong = old.start_node(2).await;
    assert!(wrong.unwrap_err().to_string().contains("T4103 identity-cluster"));
    old.options[1].cluster_id = made.cluster_id;
    old.start_node(2).await.unwrap();
    barrier(old.node(2)).await;
    let read = tokio::time::timeout(std::time::Duration::from_secs(4), old.node(1).read_barrier()).await;
    assert!(matches!(read, Err(_) | Ok(Err(ProposeError::NoLeader(_)))), "{read:?}");
    old.stop().await;
}
