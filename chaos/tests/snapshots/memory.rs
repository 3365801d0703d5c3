//! What a leader remembers for a follower that is dead.

use std::collections::BTreeMap;

use tripod_load::closed_loop::Plan;
use tripod_load::kv::{self, Op, Options, Target};
use tripod_processes::cluster::{Cluster, ClusterOptions};
use tripod_wait::until_async;

use crate::status_when;

/// So often that the log is purged before it leaves the journal: what sled takes for a long log, it takes on
/// every node, and it would hide what is looked for.
const SNAPSHOT_EVERY_ENTRIES: u64 = 500;
const KEYS: u64 = 250;
const VALUE_BYTES: usize = 16 << 10;
/// How often every key is written while all nodes live: until what is bounded is full.
const ROUNDS_BEFORE: usize = 6;
/// And how often while a follower is dead: 61 MB.
const ROUNDS_WITHOUT: usize = 15;
/// How much larger a node may be then. Half of what it was given meanwhile: whoever kept all of it for the
/// dead would be above.
const GROWTH_BYTES_MAX: u64 = 30_000_000;

/// Slower than the default: an election on a loaded machine is not what is tested.
const TIMING: [&str; 3] = ["--raft-heartbeat-ms=200", "--election-min-ms=2000", "--election-max-ms=4000"];

/// By node, the dead one left out.
fn resident_bytes(cluster: &mut Cluster) -> BTreeMap<u64, u64> {
    let running = cluster.running();
    let of = |node: &u64| (*node, cluster.process(*node).unwrap().resident_bytes().unwrap());
    running.iter().map(of).collect()
}

/// Writes every key once; again, if the leader changes meanwhile.
async fn fill(load: &Options) {
    until_async("all keys to be written", || async { kv::fill(load).await.ok() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_does_not_grow_for_a_dead_follower() {
    let every = format!("--snapshot-every-entries={SNAPSHOT_EVERY_ENTRIES}");
    let options = ClusterOptions::tripod().unwrap().with_args([every]).with_args(TIMING);
    let mut cluster = Cluster::start(options).await.unwrap();
    let load = Options {
        system: cluster.system(),
        endpoints: cluster.endpoints(),
        op: Op::Put,
        target: Target::Leader,
        clients: 16,
        connections: 16,
        streams: 0,
        value_bytes: VALUE_BYTES,
        keys: KEYS,
        plan: Plan::seconds(1.0).unwrap(),
    };
    for _ in 0..ROUNDS_BEFORE {
        fill(&load).await;
    }
    let leader = cluster.wait_for_leader().await.unwrap();
    let dead = cluster.ids().find(|node| *node != leader).unwrap();
    let before = resident_bytes(&mut cluster);
    let from = status_when(&cluster, leader, "an answer", |_| true).await.applied_index;

    cluster.kill(dead).unwrap();
    let mut largest: BTreeMap<u64, u64> = BTreeMap::new();
    for _ in 0..ROUNDS_WITHOUT {
        fill(&load).await;
        for (node, bytes) in resident_bytes(&mut cluster) {
            let known = largest.entry(node).or_default();
            *known = bytes.max(*known);
        }
    }
    let upto = status_when(&cluster, leader, "an answer", |_| true).await.applied_index;
    assert!(upto - from >= KEYS * ROUNDS_WITHOUT as u64, "the leader got {} entries", upto - from);
    println!("bytes by node: {before:?} with all nodes alive, at most {largest:?} without node {dead}");
    // Whichever led meanwhile had the dead one for a follower.
    for (node, bytes) in largest {
        assert!(bytes <= before[&node] + GROWTH_BYTES_MAX, "node {node}: {bytes} bytes, before: {before:?}");
    }

    cluster.restart(dead).unwrap();
    let what = "all that was written while it was dead";
    status_when(&cluster, dead, what, |is| is.applied_index >= upto).await;
}
