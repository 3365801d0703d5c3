//! A node that was away for long, while others write on, purge their logs, and write on.

use tripod_processes::cluster::{Cluster, ClusterOptions};

use crate::writers::Writers;
use crate::{status, status_when};

const SNAPSHOT_EVERY_ENTRIES: u64 = 300;
/// So far behind is the node that the log behind several snapshots is gone.
const MISSED_ENTRIES: u64 = 6 * SNAPSHOT_EVERY_ENTRIES;
const WRITERS: usize = 8;
/// How often the node must hold what the others held, after it came back, each time behind another purge.
const ROUNDS: usize = 3;
/// What a node logs when it has a snapshot from the leader.
const RECEIVED: &str = "snapshot received";

fn snapshots_received(cluster: &Cluster, node: u64) -> usize {
    std::fs::read_to_string(cluster.log(node)).unwrap().matches(RECEIVED).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_far_behind_catches_up_by_snapshot_while_others_write_and_purge() {
    let every = format!("--snapshot-every-entries={SNAPSHOT_EVERY_ENTRIES}");
    let mut cluster = Cluster::start(ClusterOptions::tripod().unwrap().with_args([every])).await.unwrap();
    let leader = cluster.wait_for_leader().await.unwrap();
    let behind = cluster.ids().find(|node| *node != leader).unwrap();
    let others: Vec<u64> = cluster.ids().filter(|node| *node != behind).collect();
    let endpoints: Vec<String> = others.iter().map(|node| cluster.endpoint(*node)).collect();
    let writers = Writers::start(&cluster.system(), &endpoints, WRITERS);
    let had = status_when(&cluster, behind, "an entry", |status| status.applied_index > 0).await;

    cluster.kill(behind).unwrap();
    let received = snapshots_received(&cluster, behind);
    for node in &others {
        let what = "purged what the dead node lacks";
        status_when(&cluster, *node, what, |is| is.purged_index > had.last_log_index + MISSED_ENTRIES).await;
    }
    let before = writers.acknowledged();
    cluster.restart(behind).unwrap();
    for _ in 0..ROUNDS {
        let goal = status_when(&cluster, others[0], "an answer", |_| true).await;
        status_when(&cluster, behind, "what others had applied", |is| is.applied_index >= goal.applied_index)
            .await;
        status_when(&cluster, others[0], "the next purge", |is| is.purged_index > goal.purged_index).await;
    }
    assert!(snapshots_received(&cluster, behind) > received, "it caught up, but not by snapshot");
    let during = writers.acknowledged() - before;
    let written = writers.stop().await;
    assert!(during > 0, "nobody wrote while it caught up");

    let mut digests = Vec::new();
    for node in cluster.ids() {
        written.assert_kept(&cluster, node).await;
    }
    for node in cluster.ids() {
        let is = status(&cluster, node, true).await.unwrap();
        digests.push((is.applied_index, is.digest));
    }
    let equal = digests.iter().all(|one| digests.iter().all(|other| one.0 != other.0 || one.1 == other.1));
    assert!(equal, "nodes differ at an equal index: {digests:?}");
    println!("{during} writes while it caught up; index and digest of each node: {digests:?}");
}
