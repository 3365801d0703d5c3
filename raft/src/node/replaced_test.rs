//! A leader that was replaced a moment ago and has not heard of it.

use openraft::raft::TransferLeaderRequest;
use tripod_state::ids::LogIndex;
use tripod_wait::{until, within};

use crate::ProposeError;
use crate::test_cluster::{Cluster, Wire, create_job, each_seed, write};

/// What a leader says to a reader while another one leads, which one follower has elected, and what was written there.
/// Between the two leaders nothing passes, and the follower has heard nothing of the old one since. `planted`: it tells
/// the old one what it held when it started.
async fn read_of_the_past(planted: bool) -> (Result<LogIndex, ProposeError>, LogIndex) {
    let cluster = Cluster::start(3).await;
    let old = cluster.leader().await;
    let scope = create_job(cluster.node(old)).await;
    let others: Vec<u64> = cluster.running().into_iter().filter(|node| *node != old).collect();
    let (new, follower) = (others[0], others[1]);
    let index = write(cluster.node(old), scope, "before", b"x").await;
    for node in &others {
        within("what was written", cluster.node(*node).wait_applied(index)).await.unwrap();
    }
    cluster.disk(follower).set_stale_votes(planted);
    // Its next heartbeat is yet to come.
    cluster.node(old).node().raft.runtime_config().heartbeat(false);
    cluster.wire_between(old, new, Wire::Held);
    cluster.wire_between(new, old, Wire::Held);
    let raft = &cluster.node(new).node().raft;
    let known = raft.with_raft_state(|state| (*state.vote_ref(), state.log_ids.last().copied())).await;
    let (vote, last) = known.unwrap();
    raft.handle_transfer_leader(TransferLeaderRequest::new(vote, new, last)).await.unwrap().unwrap();
    until("another leader", || cluster.node(new).leadership().borrow().ready_here.then_some(())).await;
    let written = write(cluster.node(new), scope, "after", b"x").await;

    assert!(cluster.node(old).leadership().borrow().ready_here, "it has heard of it");
    let read = within("an answer", cluster.node(old).read_barrier()).await;
    for (from, to) in [(old, new), (new, old)] {
        cluster.wire_between(from, to, Wire::Whole);
    }
    cluster.stop().await;
    (read, written)
}

#[test]
fn a_leader_that_was_replaced_a_moment_ago_answers_no_read() {
    each_seed(0..10, async || {
        let (read, _) = read_of_the_past(false).await;
        assert!(matches!(&read, Err(ProposeError::NoLeader(why)) if why.contains("elected")), "{read:?}");
    });
}

/// It is the vote that the follower tells on which the refusal rests.
#[test]
fn a_vote_that_is_not_told_lets_it_answer_from_the_past() {
    each_seed(0..3, async || {
        let (read, written) = read_of_the_past(true).await;
        assert!(read.as_ref().is_ok_and(|index| *index < written), "{read:?}, written at {written}");
    });
}
