//! Leaders that hand over to nodes which cannot take over, and planned stops.

use tokio::time::Instant;
use tripod_proto::tripod::peer::v1::SuspectRequest;
use tripod_state::ids::{DurationMs, NodeId};
use tripod_state::{Envelope, Scope};
use tripod_wait::{until, within};

use super::stop::DRAIN_DEADLINE;
use crate::test_cluster::{Cluster, create_job, each_seed, local, put, write};
use crate::{Handle, Options, ProposeError};

fn others(cluster: &Cluster, than: u64) -> [u64; 2] {
    let others: Vec<u64> = cluster.running().into_iter().filter(|node| *node != than).collect();
    others.try_into().unwrap()
}

/// Waits until all followers have all that the leader has, as the leader knows.
async fn caught_up(leader: &Handle) {
    caught_up_but(leader, &[]).await;
}

/// [`caught_up`], but for some nodes.
async fn caught_up_but(leader: &Handle, away: &[u64]) {
    until("followers that have caught up", || {
        let status = leader.status();
        let held = |member: &crate::MemberStatus| {
            member.node == status.node
                || away.contains(&member.node.0)
                || member.matched == Some(status.last_log)
        };
        status.members.iter().all(held).then_some(())
    })
    .await;
}

/// Three nodes with a job, and the leader, with which the others have caught up.
async fn three() -> (Cluster, u64, Scope) {
    three_with(|_| {}).await
}

async fn three_with(change: impl Fn(&mut Options)) -> (Cluster, u64, Scope) {
    let cluster = Cluster::start_with(3, change).await;
    let leader = cluster.leader().await;
    let scope = create_job(cluster.node(leader)).await;
    caught_up(cluster.node(leader)).await;
    (cluster, leader, scope)
}

/// Whom the leader would choose, and the third one.
async fn heir_and_other(cluster: &Cluster, leader: u64) -> [u64; 2] {
    let heir = cluster.node(leader).node().hand_over.heir(None).await.unwrap().0;
    let [one, two] = others(cluster, leader);
    [heir, if one == heir { two } else { one }]
}

/// Who can be elected besides the old leader is only the heir, whose disk stalls before it can vote for
/// itself. Without taking back, nobody leads until that disk answers.
#[test]
fn a_leader_whose_heir_does_not_take_over_leads_again() {
    each_seed(0..5, async || {
        let (cluster, old, scope) = three().await;
        let [heir, other] = others(&cluster, old);
        let node = cluster.node(old);
        let term = node.status().term;

        cluster.disk(heir).hold(true);
        cluster.node(other).node().raft.runtime_config().elect(false);
        let refused = node.transfer_leadership(Some(NodeId(heir))).await.unwrap_err();
        assert!(refused.to_string().contains("did not take over within"), "{refused}");
        write(node, scope, "after", b"x").await;
        let now = node.status();
        assert_eq!(now.leader, Some(NodeId(old)));
        assert!(now.term > term, "it leads in term {}, as before", now.term);
        // It was not for want of a quorum, which it did not ask for anything.
        assert_eq!(now.given_up.no_quorum, 0);

        cluster.disk(heir).hold(false);
        until("the key on the heir", || local(cluster.node(heir), scope, "after")).await;
        cluster.node(other).node().raft.runtime_config().elect(true);
        node.transfer_leadership(Some(NodeId(heir))).await.unwrap();
        cluster.stop().await;
    });
}

#[test]
fn whoever_stops_waiting_for_a_hand_over_leaves_it_to_itself() {
    each_seed(0..5, async || {
        let (cluster, old, scope) = three().await;
        let [heir, other] = others(&cluster, old);
        let node = cluster.node(old);

        cluster.disk(heir).hold(true);
        cluster.node(other).node().raft.runtime_config().elect(false);
        let asking = node.transfer_leadership(Some(NodeId(heir)));
        let pending = until("an heir that was told", || node.node().hand_over.is_pending().then_some(()));
        tokio::select! {
            outcome = asking => panic!("{outcome:?}"),
            () = pending => {}
        }
        write(node, scope, "after", b"x").await;
        cluster.disk(heir).hold(false);
        cluster.stop().await;
    });
}

#[test]
fn a_node_that_is_away_is_no_heir() {
    each_seed(0..5, async || {
        let (mut cluster, old, scope) = three().await;
        let [away, other] = others(&cluster, old);
        cluster.stop_node(away).await;
        let node = cluster.node(old);
        let term = node.status().term;

        let refused = node.transfer_leadership(Some(NodeId(away))).await.unwrap_err();
        assert!(refused.to_string().contains("does not answer"), "{refused}");
        // Nothing was begun: the very next proposal is taken.
        let envelope = Envelope { stamp: None, command: put(scope, "at once", b"x") };
        node.propose(envelope).await.unwrap();
        assert_eq!(node.status().term, term);

        // Its log is as far as the other's, for all that this leader knows.
        caught_up_but(node, &[away]).await;
        assert_eq!(node.node().hand_over.heir(None).await, Ok(NodeId(other)));
        node.transfer_leadership(None).await.unwrap();
        cluster.stop().await;
    });
}

#[test]
fn nobody_but_a_voter_is_an_heir() {
    each_seed(0..5, async || {
        let cluster = Cluster::start(1).await;
        cluster.leader().await;
        let node = cluster.node(1);
        let refused = node.transfer_leadership(Some(NodeId(9))).await.unwrap_err();
        assert_eq!(refused, ProposeError::NoLeader("node 9 is no voter".into()));
        assert!(node.transfer_leadership(None).await.is_err());
        node.transfer_leadership(Some(NodeId(1))).await.unwrap();
        cluster.stop().await;
    });
}

/// A planned stop whose heir stalls in the same moment: the node ends all the same, does not stand for
/// election on its way out, and the third one takes over.
#[test]
fn a_leader_that_stops_does_not_wait_for_ever_for_its_heir() {
    each_seed(0..5, async || {
        let (mut cluster, old, scope) = three().await;
        let [heir, other] = heir_and_other(&cluster, old).await;
        cluster.disk(heir).hold(true);
        within("the end of a stop", cluster.stop_node(old)).await;
        cluster.disk(heir).hold(false);
        write(cluster.node(other), scope, "after", b"x").await;
        cluster.stop().await;
    });
}

/// In this cluster an heir, and another one after it, would have 3.2 s.
#[test]
fn leaving_takes_two_seconds_at_most_however_slow_elections_are() {
    each_seed(0..5, async || {
        let (cluster, old, scope) = three_with(|options| {
            options.timing.election_min = DurationMs(800);
            options.timing.election_max = DurationMs(1600);
        })
        .await;
        let [heir, other] = heir_and_other(&cluster, old).await;
        let node = cluster.node(old);
        cluster.disk(heir).hold(true);
        cluster.node(other).node().raft.runtime_config().elect(false);
        let refused = ProposeError::NoLeader("nobody took over within 2000 ms".into());
        let begun = Instant::now();
        assert_eq!(node.leave().await, Err(refused.clone()));
        assert_eq!(node.leave().await, Err(refused), "the time is not given twice");
        assert_eq!(begun.elapsed().as_secs(), 2);

        cluster.disk(heir).hold(false);
        write(cluster.node(other), scope, "after", b"x").await;
        cluster.node(other).node().raft.runtime_config().elect(true);
        cluster.stop().await;
    });
}

#[test]
fn the_last_node_does_not_wait_for_an_heir_that_is_not_there() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(3).await;
        let last = cluster.leader().await;
        for other in others(&cluster, last) {
            cluster.stop_node(other).await;
        }
        let refused = cluster.node(last).node().hand_over.leave().await.unwrap_err().to_string();
        // It may have noticed by now that it leads nobody.
        let known = ["no other voter answers", "this node does not lead"];
        assert!(known.iter().any(|text| refused.contains(text)), "{refused}");
        cluster.stop().await;
    });
}

#[test]
fn a_stop_does_not_wait_for_peers_that_keep_their_connections() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        let follower = cluster.follower().await;
        // The leader appends to the follower, and the follower forwards to the leader.
        let index = write(cluster.node(follower), scope, "key", b"x").await;
        // Now the leader has nothing more to say: its stream of appends stays open and silent.
        for node in cluster.running() {
            cluster.node(node).wait_applied(index).await.unwrap();
        }
        let begun = Instant::now();
        cluster.stop_node(follower).await;
        let took = begun.elapsed();
        assert!(took < DRAIN_DEADLINE, "a follower stopped in {took:?}");
        cluster.stop().await;
    });
}

/// What a node answers that is asked whether it has lost a leader.
async fn suspected(asked: &Handle, node: u64, leader: u64, term: u64) -> Result<bool, tonic::Code> {
    let answer = asked.node().suspicion.answer(&SuspectRequest { node, leader, term }).await;
    answer.map(|answer| answer.agrees).map_err(|status| status.code())
}

#[test]
fn who_hears_its_leader_agrees_with_nobody_and_who_may_not_suspect_is_refused() {
    each_seed(0..5, async || {
        let (cluster, leader, _) = three().await;
        let [asked, voter] = others(&cluster, leader);
        let (asked, term) = (cluster.node(asked), cluster.node(leader).status().term.0);
        assert_eq!(suspected(asked, voter, leader, term).await, Ok(false));
        assert_eq!(suspected(cluster.node(leader), voter, leader, term).await, Ok(false));
        assert_eq!(suspected(asked, 9, leader, term).await, Err(tonic::Code::PermissionDenied));
        for (leader, term) in [(leader, term + 1), (leader, term - 1), (voter, term), (9, u64::MAX)] {
            let refused = suspected(asked, voter, leader, term).await;
            assert_eq!(refused, Err(tonic::Code::FailedPrecondition));
        }
        assert_eq!(cluster.node(leader).status().term.0, term, "nobody was elected for that");
        cluster.stop().await;
    });
}

#[test]
fn who_asks_all_the_time_whether_a_leader_is_lost_is_refused_before_it_takes_anything() {
    each_seed(0..5, async || {
        let (cluster, leader, _) = three().await;
        let [asked, voter] = others(&cluster, leader);
        let (asked, term) = (cluster.node(asked), cluster.node(leader).status().term.0);
        let questions = (0..100).map(|_| suspected(asked, voter, leader, term));
        let answers = futures::future::join_all(questions).await;
        let refused = answers.iter().filter(|answer| **answer == Err(tonic::Code::ResourceExhausted)).count();
        assert_eq!(refused, 84, "sixteen wait");
        assert_eq!(suspected(asked, voter, leader, term).await, Ok(false), "they are answered by now");
        cluster.stop().await;
    });
}
