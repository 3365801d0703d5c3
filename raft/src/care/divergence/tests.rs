//! Clusters in which a state is changed behind the log's back, and clusters in which none is.

use std::time::Duration;

use futures::FutureExt;
use tripod_state::ids::{LogIndex, NodeId, ServiceIncarnation, Term};
use tripod_state::{ApplyContext, Command, Envelope, Scope, State, job};
use tripod_wait::{until, within};

use crate::disk::Work;
use crate::snapshot::SnapshotStore;
use crate::test_cluster::{Cluster, barrier, create_job, each_seed, write, write_keys};

/// What a defect may do to a state.
fn corrupt(state: &mut State) {
    let create = job::Command::Create {
        name: "never-created".into(),
        spec: job::Spec::of_tasks(1),
        service: ServiceIncarnation(9),
    };
    let context = ApplyContext { index: LogIndex(u64::MAX), term: Term(1), now_ms: state.now_ms() };
    let outcome = state.apply(&context, Envelope { stamp: None, command: Command::Job(create) });
    assert!(outcome.reply.is_ok(), "{:?}", outcome.reply);
}

/// Why `node` stops, while the cluster is in use.
async fn reason_of(cluster: &Cluster, scope: Scope, node: u64) -> String {
    let writer = cluster.running().into_iter().find(|other| *other != node).unwrap();
    let writing = async {
        for number in 0.. {
            write(cluster.node(writer), scope, &format!("during-{number}"), b"x").await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let failed = async {
        tokio::select! {
            reason = cluster.node(node).failed() => reason,
            () = writing => unreachable!("it is written until the node stops"),
        }
    };
    within("the end of a divergent node", failed).await
}

fn assert_sound(cluster: &Cluster, node: u64) {
    let failed = cluster.node(node).failed().now_or_never();
    assert_eq!(failed, None, "node {node} stopped");
}

/// Waits until the state of `node` is known to be a majority's at a later index than now.
async fn compared(cluster: &Cluster, scope: Scope, node: u64) {
    let written = write(cluster.node(node), scope, "compared", b"x").await;
    until("a comparison", || (cluster.node(node).status().comparisons.last >= written).then_some(())).await;
}

#[test]
fn a_follower_whose_state_was_changed_is_named_and_stops() {
    each_seed(0..2, async || {
        let mut cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        let follower = cluster.follower().await;
        compared(&cluster, scope, follower).await;
        let sound_until = cluster.node(follower).applied_index();
        cluster.node(follower).machine().corrupt(corrupt);
        let reason = reason_of(&cluster, scope, follower).await;
        assert!(reason.starts_with("T3112 state-diverged"), "{reason}");
        let node = format!("the state of node {follower} differs");
        let data = cluster.data(follower).display().to_string();
        let command = format!("mv {data} {data}.damaged");
        for part in [node.as_str(), "at log index", "its digest is", "that of nodes", &command] {
            assert!(reason.contains(part), "no {part:?} in: {reason}");
        }
        let alarm = until("an alarm on the leader that names the node", || {
            let leader = cluster
                .running()
                .into_iter()
                .find(|node| cluster.node(*node).leadership().borrow().ready_here)?;
            let comparisons = cluster.node(leader).status().comparisons;
            // Its state may be compared again before it has stopped, but each index counts once.
            assert!(
                comparisons.diverged <= comparisons.last.0 - sound_until.0,
                "{comparisons:?}, {sound_until:?}"
            );
            // A leader that is new hears again of the states, of one after the other.
            comparisons.alarm.filter(|alarm| alarm.contains(&node))
        });
        alarm.await;

        cluster.stop_node(follower).await;
        for node in cluster.running() {
            compared(&cluster, scope, node).await;
            assert_sound(&cluster, node);
        }
        cluster.stop().await;
    });
}

#[test]
fn a_leader_whose_state_was_changed_stops_and_the_others_go_on() {
    each_seed(0..2, async || {
        let mut cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        cluster.node(leader).machine().corrupt(corrupt);
        let reason = reason_of(&cluster, scope, leader).await;
        assert!(reason.contains(&format!("the state of node {leader} differs")), "{reason}");
        cluster.stop_node(leader).await;
        cluster.leader().await;
        for node in cluster.running() {
            compared(&cluster, scope, node).await;
            assert_sound(&cluster, node);
        }
        cluster.stop().await;
    });
}

#[test]
fn of_two_nodes_that_differ_none_stops_but_an_alarm_names_both() {
    each_seed(0..2, async || {
        let cluster = Cluster::start(2).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        cluster.node(cluster.follower().await).machine().corrupt(corrupt);
        write(cluster.node(leader), scope, "after", b"x").await;
        let alarm = until("an alarm", || cluster.node(leader).status().comparisons.alarm).await;
        assert!(alarm.starts_with("T3112 state-diverged"), "{alarm}");
        assert!(alarm.contains("node 1 has") && alarm.contains("node 2 has"), "{alarm}");
        write(cluster.node(leader), scope, "still-served", b"x").await;
        for node in 1..=2 {
            assert_sound(&cluster, node);
        }
        cluster.stop().await;
    });
}

/// What became divergent in memory goes into the next snapshot: a restart does not hide it.
#[test]
fn a_node_with_a_divergent_snapshot_is_found_at_every_start() {
    each_seed(0..2, async || {
        let mut cluster = Cluster::start_with(3, |options| {
            options.snapshot_every_entries = 50;
            options.keep_entries = 10;
        })
        .await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        write_keys(cluster.node(leader), scope, 60).await;
        let follower = cluster.follower().await;
        until("a snapshot", || (cluster.node(follower).status().snapshot > LogIndex(0)).then_some(())).await;
        cluster.stop_node(follower).await;
        let disk = cluster.disk(follower);
        let snapshots = SnapshotStore::open(disk.snapshots(), Work::Inline(disk)).unwrap();
        let current = snapshots.current().unwrap();
        let (mut header, mut state) = current.snapshot.read().unwrap();
        corrupt(&mut state);
        header.digest = state.digest();
        let (work, store) = (snapshots.work().clone(), snapshots.clone());
        work.run(move || store.write(&header, &state)).await.unwrap().unwrap();
        for _ in 0..2 {
            cluster.start_node(follower).await.unwrap();
            let reason = reason_of(&cluster, scope, follower).await;
            assert!(reason.contains(&format!("the state of node {follower} differs")), "{reason}");
            cluster.stop_node(follower).await;
        }
        cluster.stop().await;
    });
}

#[test]
fn equal_states_are_never_found_to_differ() {
    each_seed(0..2, async || {
        let mut cluster = Cluster::start_with(3, |options| {
            options.snapshot_every_entries = 40;
            options.keep_entries = 5;
        })
        .await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        for round in 0..3 {
            // One node misses enough to be given a snapshot, and leadership moves meanwhile.
            let away = cluster.follower().await;
            cluster.stop_node(away).await;
            let leader = cluster.leader().await;
            for number in 0..100 {
                write(cluster.node(leader), scope, &format!("key-{number}"), &[round; 300]).await;
            }
            cluster.start_node(away).await.unwrap();
            barrier(cluster.node(away)).await;
            let leader = cluster.leader().await;
            // It need not succeed.
            let _ = cluster.node(leader).transfer_leadership(Some(NodeId(away))).await;
            cluster.leader().await;
            compared(&cluster, scope, away).await;
        }
        for node in 1..=3 {
            compared(&cluster, scope, node).await;
            let comparisons = cluster.node(node).status().comparisons;
            assert!(comparisons.agreed > 0, "{comparisons:?}");
            assert_eq!((comparisons.diverged, comparisons.alarm), (0, None));
            assert_sound(&cluster, node);
        }
        cluster.stop().await;
    });
}

#[test]
fn a_log_that_rests_is_compared_once_and_a_lone_node_never() {
    each_seed(0..2, async || {
        let lone = Cluster::start(1).await;
        lone.leader().await;
        create_job(lone.node(1)).await;
        let cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        compared(&cluster, scope, leader).await;
        let agreed = cluster.node(leader).status().comparisons;
        tokio::time::sleep(Duration::from_secs(45)).await;
        assert_eq!(cluster.node(leader).status().comparisons, agreed, "nothing was written since");
        assert_eq!(lone.node(1).status().comparisons.agreed, 0);
        lone.stop().await;
        cluster.stop().await;
    });
}
