//! The same seed gives the same run, to the microsecond and the byte.

use std::time::Duration;

use tokio::time::Instant;
use tripod_raft::SimulatedDisk;
use tripod_state::ids::LogIndex;
use tripod_state::{Envelope, Scope, State};
use tripod_wait::until;

use crate::common::simulation::with_seed;
use crate::common::{Cluster, barrier, create_job, local, put, write};

/// What can be seen of a run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Trace {
    /// How long it lasted so far, who leads, and the last index, at many moments.
    moments: Vec<(Duration, u64, LogIndex)>,
    states: Vec<u64>,
    disks: Vec<u64>,
}

/// Writes through every node, then in a crowd, hands leadership over, and stops and starts all nodes.
async fn round(cluster: &mut Cluster, scope: Scope, round: u64, began: Instant, trace: &mut Trace) {
    let leader = cluster.leader().await;
    for number in 0..60 {
        let node = cluster.node((number + round) % 3 + 1);
        let index = write(node, scope, &format!("key-{number}"), &[7; 500]).await;
        trace.moments.push((began.elapsed(), leader, index));
    }
    let leader = cluster.leader().await;
    let crowd = (0..100).map(|number| {
        let command = put(scope, &format!("crowd-{number}"), b"x");
        cluster.node(leader).propose(Envelope { stamp: None, command })
    });
    futures::future::join_all(crowd).await.into_iter().for_each(|applied| drop(applied.unwrap()));
    cluster.node(leader).transfer_leadership(None).await.unwrap();
    let next = cluster.leader().await;
    trace.moments.push((began.elapsed(), next, barrier(cluster.node(leader)).await));
    for node in 1..=3 {
        cluster.stop_node(node).await;
    }
    for node in 1..=3 {
        cluster.start_node(node).await.unwrap();
    }
    cluster.leader().await;
}

async fn run() -> Trace {
    let began = Instant::now();
    let mut cluster = Cluster::start_with(3, |options| {
        options.snapshot_every_entries = 50;
        options.keep_entries = 5;
    })
    .await;
    let scope = create_job(cluster.node(cluster.leader().await)).await;
    let mut trace = Trace::default();
    for number in 0..3 {
        round(&mut cluster, scope, number, began, &mut trace).await;
    }
    for node in 1..=3 {
        let node = cluster.node(node);
        barrier(node).await;
        assert_eq!(local(node, scope, "key-59").unwrap(), vec![7; 500]);
        until("a snapshot", || (node.status().snapshot > LogIndex(0)).then_some(())).await;
    }
    let disks = [1, 2, 3].map(|node| cluster.disk(node));
    let applied = cluster.ground.applied();
    for disk in &disks {
        let log = disk.log();
        assert!(!log.is_empty());
        assert!(log.iter().all(|line| applied.get(&line.index).is_none_or(|known| known == line)));
    }
    trace.states = (1..=3).map(|node| cluster.node(node).read(State::digest)).collect();
    cluster.stop().await;
    trace.disks = disks.iter().map(SimulatedDisk::digest).collect();
    trace
}

#[test]
fn a_seed_repeats_a_whole_cluster() {
    let first = with_seed(1, run);
    assert!(first.states.iter().all(|digest| *digest == first.states[0]), "{:?}", first.states);
    let again = with_seed(1, run);
    let parting = first.moments.iter().zip(&again.moments).find(|(first, again)| first != again);
    assert!(again == first, "the runs part at {parting:?}");
    assert!(with_seed(2, run).moments != first.moments, "the seed decides nothing");
}
