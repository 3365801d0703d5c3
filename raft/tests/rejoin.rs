//! A voter that has lost its data comes back under its own id, and does no harm before.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod common;

use std::time::{Duration, Instant};

use common::members::{begin, done, done_when_caught_up, ended, prepare};
use common::{
    Cluster, PATIENCE, assert_same_states, barrier, copy_directory, create_job, eventually, local, options,
    propose, write,
};
use tempfile::TempDir;
use tripod_state::ids::{LogIndex, NodeId};
use tripod_state::member::{Change, Ending};
use tripod_state::{Command, Scope, member};

/// Far longer than nodes that may elect a leader need for it here.
const LEADERLESS: Duration = Duration::from_secs(5);

/// Says, as the binary does at every start, that this node lives; all nodes know when it returns.
async fn announce_all(cluster: &Cluster) {
    for node in cluster.running() {
        let addresses = member::Addresses {
            client: format!("127.0.0.1:{node}"),
            http: format!("127.0.0.1:{node}"),
            job_host: "127.0.0.1".into(),
            job_port_first: 1,
            job_port_count: 1,
        };
        let announce = member::Command::Announce { node: NodeId(node), addresses };
        let applied = propose(cluster.node(node), &Command::Member(announce)).await;
        for node in cluster.running() {
            cluster.node(node).wait_applied(applied.index).await.unwrap();
        }
    }
}

/// What an operator is told to do with a node's data.
fn wipe(cluster: &Cluster, node: u64) {
    let data = cluster.data(node);
    std::fs::rename(&data, data.with_extension("damaged")).unwrap();
}

async fn assert_whole(cluster: &Cluster, scope: Scope, keys: u32) {
    for node in 1..=3 {
        barrier(cluster.node(node)).await;
        for number in 0..keys {
            let key = format!("key-{number}");
            assert!(local(cluster.node(node), scope, &key).is_some(), "node {node} has lost {key}");
        }
    }
    assert_same_states(&[1, 2, 3].map(|node| cluster.node(node))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_follower_takes_everything_from_the_others_and_votes_again() {
    let mut cluster = Cluster::start_with(3, |options| {
        options.snapshot_every_entries = 60;
        options.keep_entries = 5;
    })
    .await;
    let leader = cluster.leader().await;
    let scope = create_job(cluster.node(leader)).await;
    for number in 0..100 {
        write(cluster.node(leader), scope, &format!("key-{number}"), b"x").await;
    }
    // The leader knows what the follower acknowledged, though it never announced itself.
    let wiped = cluster.follower().await;
    cluster.stop_node(wiped).await;
    wipe(&cluster, wiped);
    cluster.start_node(wiped).await.unwrap();
    cluster.leader().await;
    assert_whole(&cluster, scope, 100).await;
    eventually("the end of the return", || (!cluster.data(wiped).join("rejoining").exists()).then_some(()))
        .await;
    // Its vote counts again: with one more node down it is needed for everything.
    let other = (1..=3).find(|node| ![wiped, leader].contains(node)).unwrap();
    cluster.stop_node(other).await;
    cluster.leader().await;
    write(cluster.node(wiped), scope, "after", b"y").await;
    cluster.start_node(other).await.unwrap();
    cluster.leader().await;
    assert_whole(&cluster, scope, 100).await;
    cluster.stop().await;
}

/// Without the silence of the wiped node it and the one that missed the writes would be a majority, and
/// elect a leader that has never heard of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_node_does_not_help_a_node_that_lacks_acknowledged_entries() {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    let scope = create_job(cluster.node(leader)).await;
    announce_all(&cluster).await;
    let [wiped, missing] = {
        let mut followers = (1..=3).filter(|node| *node != leader);
        [followers.next().unwrap(), followers.next().unwrap()]
    };
    cluster.stop_node(missing).await;
    for number in 0..20 {
        write(cluster.node(leader), scope, &format!("key-{number}"), b"x").await;
    }
    cluster.stop_node(wiped).await;
    cluster.stop_node(leader).await;
    wipe(&cluster, wiped);

    cluster.start_node(missing).await.unwrap();
    cluster.start_node(wiped).await.unwrap();
    let note = cluster.data(wiped).join("rejoining");
    eventually("a note that the data is lost", || note.exists().then_some(())).await;
    // A start in the middle changes nothing.
    cluster.stop_node(wiped).await;
    cluster.start_node(wiped).await.unwrap();
    let until = Instant::now() + LEADERLESS;
    while Instant::now() < until {
        for node in [missing, wiped] {
            assert!(!cluster.node(node).leadership().borrow().ready_here, "node {node} leads");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(cluster.node(wiped).applied_index(), LogIndex(0));

    cluster.start_node(leader).await.unwrap();
    cluster.leader().await;
    assert_whole(&cluster, scope, 20).await;
    eventually("the end of the return", || (!note.exists()).then_some(())).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_late_at_the_first_start_needs_nobodys_leave() {
    let directory = TempDir::new().unwrap();
    let options = options(&directory, 3);
    let heard = options.iter().map(|_| std::sync::Arc::default()).collect();
    let mut cluster = Cluster { directory, nodes: vec![None; 3], options, heard };
    cluster.start_node(1).await.unwrap();
    cluster.start_node(2).await.unwrap();
    let leader = cluster.leader().await;
    let scope = create_job(cluster.node(leader)).await;
    announce_all(&cluster).await;
    write(cluster.node(leader), scope, "key-0", b"x").await;
    // Not all other nodes are there, so a node that had lost its data would not come back.
    cluster.stop_node(leader).await;
    cluster.start_node(3).await.unwrap();
    cluster.leader().await;
    assert!(!cluster.data(3).join("rejoining").exists());
    write(cluster.node(3), scope, "key-1", b"x").await;
    cluster.start_node(leader).await.unwrap();
    cluster.leader().await;
    assert_whole(&cluster, scope, 2).await;
    cluster.stop().await;
}

/// Three nodes of which 2 was replaced by 4, where node 2 was or elsewhere, and node 1 has lost its data. It is a
/// voter, and was not the leader.
async fn replaced_and_wiped(in_place: bool) -> (Cluster, Scope) {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    let scope = create_job(cluster.node(leader)).await;
    announce_all(&cluster).await;
    write(cluster.node(leader), scope, "key-0", b"x").await;
    cluster.stop_node(2).await;
    let mut peer = prepare(&mut cluster);
    if in_place {
        // The address of a member is given to nobody else.
        done(&cluster, Change::Remove { node: NodeId(2) }).await;
        peer.clone_from(&cluster.options[1].peer_listen);
        cluster.options[3].peer_listen.clone_from(&peer);
        done(&cluster, Change::Add { peer }).await;
        cluster.start_node(4).await.unwrap();
        done_when_caught_up(&cluster, Change::Promote { node: NodeId(4) }).await;
    } else {
        let planned = begin(&cluster, Change::Replace { old: NodeId(2), peer }).await.unwrap();
        cluster.start_node(4).await.unwrap();
        assert_eq!(ended(&cluster, planned.change.unwrap()).await, Ending::Done);
    }
    if cluster.leader().await == 1 {
        cluster.node(1).transfer_leadership(Some(NodeId(3))).await.unwrap();
    }
    cluster.stop_node(1).await;
    wipe(&cluster, 1);
    cluster.start_node(1).await.unwrap();
    (cluster, scope)
}

/// Its list of the first start says that node 2 is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_node_asks_whoever_is_in_the_place_of_a_node_of_the_first_start() {
    let (mut cluster, scope) = replaced_and_wiped(true).await;
    cluster.leader().await;
    barrier(cluster.node(1)).await;
    assert!(local(cluster.node(1), scope, "key-0").is_some());
    let note = cluster.data(1).join("rejoining");
    eventually("the end of the return", || (!note.exists()).then_some(())).await;
    // Its vote counts.
    cluster.stop_node(3).await;
    cluster.leader().await;
    write(cluster.node(1), scope, "after", b"y").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_node_that_cannot_find_a_voter_of_now_ends_and_says_what_to_do() {
    let (mut cluster, scope) = replaced_and_wiped(false).await;
    let told = tokio::time::timeout(PATIENCE, cluster.node(1).failed()).await.unwrap();
    assert!(told.starts_with("T3111 data-lost: ") && told.contains("does not find node 4"), "{told}");
    assert!(told.contains("`tripod member remove 1`") && told.contains("--join"), "{told}");
    cluster.stop_node(1).await;
    write(cluster.node(3), scope, "still", b"y").await;
    cluster.stop().await;
}

/// It made the healthy leader panic, and would have voted without what it had acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_copy_of_a_directory_is_refused_and_the_leader_goes_on() {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    let scope = create_job(cluster.node(leader)).await;
    let older = cluster.follower().await;
    cluster.stop_node(older).await;
    let data = cluster.data(older);
    let kept = data.with_extension("kept");
    copy_directory(&data, &kept);
    cluster.start_node(older).await.unwrap();
    for number in 0..20 {
        write(cluster.node(leader), scope, &format!("key-{number}"), b"x").await;
    }
    let last = cluster.node(leader).applied_index();
    cluster.node(older).wait_applied(last).await.unwrap();
    // The leader's figures are a moment behind what it knows.
    eventually("a leader that knows what the follower has", || {
        let members = cluster.node(leader).status().members;
        let known = members.iter().find(|member| member.node == NodeId(older))?.matched;
        (known >= Some(last)).then_some(())
    })
    .await;
    cluster.stop_node(older).await;
    wipe(&cluster, older);
    copy_directory(&kept, &data);

    let term = cluster.node(leader).status().term;
    cluster.start_node(older).await.unwrap();
    let told = tokio::time::timeout(PATIENCE, cluster.node(older).failed()).await.unwrap();
    assert!(told.starts_with("T3115 data-older: ") && told.contains("mv "), "{told}");
    cluster.stop_node(older).await;
    write(cluster.node(leader), scope, "still", b"x").await;
    assert_eq!(cluster.node(leader).status().term, term, "the leader was disturbed");

    // What the text says helps.
    std::fs::remove_dir_all(&data).unwrap();
    cluster.start_node(older).await.unwrap();
    cluster.leader().await;
    assert_whole(&cluster, scope, 20).await;
    cluster.stop().await;
}
