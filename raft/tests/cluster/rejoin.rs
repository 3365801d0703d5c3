//! A voter that has lost its data comes back under its own id, and does no harm before.

use std::time::Duration;

use tokio::time::Instant;
use tripod_state::Scope;
use tripod_state::ids::{LogIndex, NodeId};
use tripod_state::member::Change;
use tripod_wait::{until, within};

use crate::common::members::{announcement, done, done_when_caught_up, list, prepare};
use crate::common::{
    Cluster, Ground, assert_whole, barrier, create_job, each_seed, local, propose, write, write_keys,
};

/// Far longer than nodes that may elect a leader need for it here.
const LEADERLESS: Duration = Duration::from_secs(30);
/// The note of a node that it has lost its data.
const NOTE: &str = "rejoining";

/// Says, as the binary does at every start, that this node lives; all nodes know when it returns.
async fn announce_all(cluster: &Cluster) {
    for node in cluster.running() {
        let applied = propose(cluster.node(node), &announcement(node)).await;
        for node in cluster.running() {
            cluster.node(node).wait_applied(applied.index).await.unwrap();
        }
    }
}

async fn end_of_the_return(cluster: &Cluster, node: u64) {
    until("the end of the return", || (!cluster.has_file(node, NOTE)).then_some(())).await;
}

#[test]
fn a_wiped_follower_takes_everything_from_the_others_and_votes_again() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start_with(3, |options| {
            options.snapshot_every_entries = 60;
            options.keep_entries = 5;
        })
        .await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        write_keys(cluster.node(leader), scope, 100).await;
        // The leader knows what the follower acknowledged, though it never announced itself.
        let wiped = cluster.follower().await;
        cluster.stop_node(wiped).await;
        cluster.disk(wiped).wipe();
        cluster.start_node(wiped).await.unwrap();
        cluster.leader().await;
        assert_whole(&cluster, scope, 100).await;
        end_of_the_return(&cluster, wiped).await;
        // Its vote counts again: with one more node down it is needed for everything.
        let other = (1..=3).find(|node| ![wiped, leader].contains(node)).unwrap();
        cluster.stop_node(other).await;
        cluster.leader().await;
        write(cluster.node(wiped), scope, "after", b"y").await;
        cluster.start_node(other).await.unwrap();
        cluster.leader().await;
        assert_whole(&cluster, scope, 100).await;
        cluster.stop().await;
    });
}

/// Without the silence of the wiped node it and the one that missed the writes would be a majority, and
/// elect a leader that has never heard of them.
#[test]
fn a_wiped_node_does_not_help_a_node_that_lacks_acknowledged_entries() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        announce_all(&cluster).await;
        let [wiped, missing] = {
            let mut followers = (1..=3).filter(|node| *node != leader);
            [followers.next().unwrap(), followers.next().unwrap()]
        };
        cluster.stop_node(missing).await;
        write_keys(cluster.node(leader), scope, 20).await;
        cluster.stop_node(wiped).await;
        cluster.stop_node(leader).await;
        cluster.disk(wiped).wipe();

        cluster.start_node(missing).await.unwrap();
        cluster.start_node(wiped).await.unwrap();
        until("a note that the data is lost", || cluster.has_file(wiped, NOTE).then_some(())).await;
        // A start in the middle changes nothing.
        cluster.stop_node(wiped).await;
        cluster.start_node(wiped).await.unwrap();
        let end = Instant::now() + LEADERLESS;
        while Instant::now() < end {
            for node in [missing, wiped] {
                assert!(!cluster.node(node).leadership().borrow().ready_here, "node {node} leads");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(cluster.node(wiped).applied_index(), LogIndex(0));

        cluster.start_node(leader).await.unwrap();
        cluster.leader().await;
        assert_whole(&cluster, scope, 20).await;
        end_of_the_return(&cluster, wiped).await;
        cluster.stop().await;
    });
}

/// Whoever counted on it would lose the quorum, hand over to nobody, or take its word for a proof.
#[test]
fn a_wiped_node_is_none_that_answers_before_it_holds_everything() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(5).await;
        let leader = cluster.leader().await;
        announce_all(&cluster).await;
        let mut followers = (1..=5).filter(|node| *node != leader);
        let [silent, wiped] = [followers.next().unwrap(), followers.next().unwrap()];
        // A node that has lost its data comes back when all others have answered.
        cluster.stop_node(silent).await;
        cluster.stop_node(wiped).await;
        cluster.disk(wiped).wipe();
        cluster.start_node(wiped).await.unwrap();
        until("a note that the data is lost", || cluster.has_file(wiped, NOTE).then_some(())).await;
        let votes = list(cluster.node(leader)).await.votes;
        assert_eq!(votes.silent(), [NodeId(silent), NodeId(wiped)]);
        cluster.stop().await;
    });
}

#[test]
fn a_node_that_is_late_at_the_first_start_needs_nobodys_leave() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::prepared(Ground::simulated(), 3, |_| {});
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
        assert!(!cluster.has_file(3, NOTE));
        write(cluster.node(3), scope, "key-1", b"x").await;
        cluster.start_node(leader).await.unwrap();
        cluster.leader().await;
        assert_whole(&cluster, scope, 2).await;
        cluster.stop().await;
    });
}

/// Three nodes of which 2 was replaced by 4, where node 2 was, and node 1 has lost its data. It is a voter, and was not
/// the leader.
async fn replaced_and_wiped() -> (Cluster, Scope) {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    let scope = create_job(cluster.node(leader)).await;
    announce_all(&cluster).await;
    write(cluster.node(leader), scope, "key-0", b"x").await;
    cluster.stop_node(2).await;
    let mut peer = prepare(&mut cluster);
    // The address of a member is given to nobody else.
    done(&cluster, Change::Remove { node: NodeId(2) }).await;
    peer.clone_from(&cluster.options[1].peer_listen);
    cluster.options[3].peer_listen.clone_from(&peer);
    done(&cluster, Change::Add { peer }).await;
    cluster.start_node(4).await.unwrap();
    done_when_caught_up(&cluster, Change::Promote { node: NodeId(4) }).await;
    if cluster.leader().await == 1 {
        cluster.node(1).transfer_leadership(Some(NodeId(3))).await.unwrap();
    }
    cluster.stop_node(1).await;
    cluster.disk(1).wipe();
    cluster.start_node(1).await.unwrap();
    (cluster, scope)
}

/// Its list of the first start says that node 2 is there.
#[test]
fn a_wiped_node_asks_whoever_is_in_the_place_of_a_node_of_the_first_start() {
    each_seed(0..5, async || {
        let (mut cluster, scope) = replaced_and_wiped().await;
        cluster.leader().await;
        barrier(cluster.node(1)).await;
        assert!(local(cluster.node(1), scope, "key-0").is_some());
        end_of_the_return(&cluster, 1).await;
        // Its vote counts.
        cluster.stop_node(3).await;
        cluster.leader().await;
        write(cluster.node(1), scope, "after", b"y").await;
        cluster.stop().await;
    });
}

/// It made the healthy leader panic, and would have voted without what it had acknowledged.
#[test]
fn an_older_copy_of_a_directory_is_refused_and_the_leader_goes_on() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        let older = cluster.follower().await;
        cluster.stop_node(older).await;
        let kept = cluster.disk(older).copy();
        cluster.start_node(older).await.unwrap();
        write_keys(cluster.node(leader), scope, 20).await;
        let last = cluster.node(leader).applied_index();
        cluster.node(older).wait_applied(last).await.unwrap();
        // The leader's figures are a moment behind what it knows.
        until("a leader that knows what the follower has", || {
            let members = cluster.node(leader).status().members;
            let known = members.iter().find(|member| member.node == NodeId(older))?.matched;
            (known >= Some(last)).then_some(())
        })
        .await;
        cluster.stop_node(older).await;
        cluster.disk(older).restore(&kept);

        let term = cluster.node(leader).status().term;
        cluster.start_node(older).await.unwrap();
        let told = within("a failure", cluster.node(older).failed()).await;
        assert!(told.starts_with("T3115 data-older: ") && told.contains("mv "), "{told}");
        cluster.stop_node(older).await;
        write(cluster.node(leader), scope, "still", b"x").await;
        assert_eq!(cluster.node(leader).status().term, term, "the leader was disturbed");

        // What the text says helps.
        cluster.disk(older).wipe();
        cluster.start_node(older).await.unwrap();
        cluster.leader().await;
        assert_whole(&cluster, scope, 20).await;
        cluster.stop().await;
    });
}
