//! Leaders whose process ends, and leaders of whom it only looks so.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tripod_raft::Handle;
use tripod_state::ids::{NodeId, Term};
use tripod_wait::until;

use crate::common::{Cluster, Wire, create_job, each_seed, write};

/// Far more than a follower takes to connect to its leader.
const SETTLED: Duration = Duration::from_secs(1);
/// The least time after which the timers replace a leader that was heard a moment ago.
const LEASE: Duration = Duration::from_millis(600);

/// Three nodes that have settled, and who leads.
async fn three() -> (Cluster, u64) {
    let cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    create_job(cluster.node(leader)).await;
    sleep(SETTLED).await;
    (cluster, leader)
}

fn others(cluster: &Cluster, than: u64) -> Vec<u64> {
    cluster.running().into_iter().filter(|node| *node != than).collect()
}

fn term(node: &Handle) -> Term {
    node.leadership().borrow().term
}

/// All connections from and to a node are reset, and it neither connects nor is connected to. That is how the others
/// see the end of a process.
fn end(cluster: &Cluster, node: u64) {
    cluster.wire(node, Wire::Cut);
    cluster.wire_from(node, Wire::Cut);
}

/// The same between two nodes only, or no more.
fn between(cluster: &Cluster, one: u64, other: u64, wire: Wire) {
    let peer = |node: u64| &cluster.options[usize::try_from(node - 1).unwrap()].peer_listen;
    cluster.ground.exchange().set(peer(one), peer(other), wire);
    cluster.ground.exchange().set(peer(other), peer(one), wire);
}

/// How long it takes until both others follow a new leader that is ready.
async fn replaced(cluster: &Cluster, old: u64) -> (u64, Duration) {
    let began = Instant::now();
    let others = others(cluster, old);
    let new = until("another leader", || {
        let leads = |node: &&u64| cluster.node(**node).leadership().borrow().ready_here;
        let leader = *others.iter().find(leads)?;
        let known = |node: &u64| cluster.node(*node).leadership().borrow().leader == Some(NodeId(leader));
        others.iter().all(known).then_some(leader)
    })
    .await;
    (new, began.elapsed())
}

/// A tenth of a second, and what twelve messages take that follow upon each other.
fn soon(cluster: &Cluster) -> Duration {
    Duration::from_millis(100 + 12 * cluster.ground.exchange().latency_max_ms)
}

/// For so long nobody is elected anew.
async fn nobody_stands(cluster: &Cluster, leader: u64) {
    let terms = || -> Vec<Term> { (1..=3).map(|node| term(cluster.node(node))).collect() };
    let stood = || -> u64 { (1..=3).map(|node| cluster.node(node).measures().elections.stood).sum() };
    let before = (terms(), stood());
    for _ in 0..100 {
        sleep(Duration::from_millis(20)).await;
        assert_eq!((terms(), stood()), before);
        assert_eq!(cluster.node(leader).leadership().borrow().leader, Some(NodeId(leader)));
    }
}

#[test]
fn a_leader_whose_process_ends_is_replaced_long_before_its_lease_is_over() {
    each_seed(0..20, async || {
        let (cluster, leader) = three().await;
        let before = term(cluster.node(leader));
        end(&cluster, leader);
        let (new, took) = replaced(&cluster, leader).await;
        assert!(took <= soon(&cluster), "{took:?}");
        assert!(took < LEASE, "{took:?}");
        assert!(term(cluster.node(new)).0 <= before.0 + 2, "at most two have stood");
        cluster.stop().await;
    });
}

#[test]
fn three_of_five_are_enough_to_replace_a_leader_at_once() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(5).await;
        let leader = cluster.leader().await;
        sleep(SETTLED).await;
        let away = others(&cluster, leader)[0];
        cluster.stop_node(away).await;
        end(&cluster, leader);
        let (_, took) = replaced(&cluster, leader).await;
        assert!(took <= soon(&cluster), "{took:?}");
        cluster.stop().await;
    });
}

#[test]
fn a_leader_that_stands_still_is_replaced_by_the_timers() {
    each_seed(0..10, async || {
        let (cluster, leader) = three().await;
        cluster.wire(leader, Wire::Held);
        cluster.wire_from(leader, Wire::Held);
        let (_, took) = replaced(&cluster, leader).await;
        assert!(took >= LEASE - Duration::from_millis(200), "{took:?}");
        cluster.wire(leader, Wire::Whole);
        cluster.wire_from(leader, Wire::Whole);
        cluster.leader().await;
        cluster.stop().await;
    });
}

#[test]
fn resets_that_one_voter_sees_elect_nobody() {
    each_seed(0..10, async || {
        let (cluster, leader) = three().await;
        let voter = others(&cluster, leader)[0];
        between(&cluster, voter, leader, Wire::Cut);
        nobody_stands(&cluster, leader).await;
        between(&cluster, voter, leader, Wire::Whole);
        cluster.leader().await;
        cluster.stop().await;
    });
}

#[test]
fn a_leader_whose_port_alone_refuses_for_a_while_goes_on_leading() {
    each_seed(0..10, async || {
        let (cluster, leader) = three().await;
        // What it says to the others goes on.
        cluster.wire(leader, Wire::Cut);
        sleep(Duration::from_millis(60)).await;
        cluster.wire(leader, Wire::Whole);
        nobody_stands(&cluster, leader).await;
        cluster.stop().await;
    });
}

#[test]
fn a_leader_that_is_stopped_hands_over_and_nobody_stands_besides_its_heir() {
    each_seed(0..10, async || {
        let (mut cluster, leader) = three().await;
        let others = others(&cluster, leader);
        let stood = |cluster: &Cluster| -> u64 {
            others.iter().map(|node| cluster.node(*node).measures().elections.stood).sum()
        };
        let before = (term(cluster.node(leader)), stood(&cluster));
        cluster.stop_node(leader).await;
        let new = cluster.leader().await;
        sleep(SETTLED).await;
        assert_eq!((term(cluster.node(new)).0, stood(&cluster)), (before.0.0 + 1, before.1 + 1));
        cluster.stop().await;
    });
}

/// Connections to it were reset and refused, and it led all the while: that may happen again.
#[test]
fn after_a_leader_that_turned_out_to_live_nobody_is_suspected_for_a_while() {
    each_seed(0..10, async || {
        let (cluster, leader) = three().await;
        let [voter, heir]: [u64; 2] = others(&cluster, leader).try_into().unwrap();
        between(&cluster, voter, leader, Wire::Cut);
        sleep(Duration::from_millis(200)).await;
        between(&cluster, voter, leader, Wire::Whole);
        sleep(SETTLED).await;
        cluster.node(leader).transfer_leadership(Some(NodeId(heir))).await.unwrap();
        cluster.leader().await;
        sleep(SETTLED).await;
        end(&cluster, heir);
        let (_, took) = replaced(&cluster, heir).await;
        assert!(took >= LEASE - Duration::from_millis(200), "{took:?}: the voter does not rest");
        cluster.stop().await;
    });
}

#[test]
fn nothing_that_was_acknowledged_is_lost_when_leaders_end() {
    each_seed(0..10, async || {
        let cluster = Cluster::start(3).await;
        let mut leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        for round in 0..3 {
            sleep(SETTLED).await;
            let key = format!("round {round}");
            write(cluster.node(leader), scope, &key, b"x").await;
            let old = leader;
            end(&cluster, old);
            (leader, _) = replaced(&cluster, old).await;
            crate::common::barrier(cluster.node(leader)).await;
            assert!(crate::common::local(cluster.node(leader), scope, &key).is_some(), "{key} is lost");
            cluster.wire(old, Wire::Whole);
            cluster.wire_from(old, Wire::Whole);
            leader = cluster.leader().await;
        }
        cluster.stop().await;
    });
}
