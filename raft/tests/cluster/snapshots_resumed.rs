//! A transfer of a snapshot that breaks goes on where it was.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tripod_state::Scope;
use tripod_state::ids::{LogIndex, NodeId};
use tripod_wait::until;

use crate::common::meter::Meter;
use crate::common::{Cluster, Wire, assert_same_states, barrier, create_job, each_seed, local, write};

/// The state is this many keys of a MiB each, and some small ones.
const LARGE_KEYS: u64 = 20;
const MEBIBYTE: u64 = 1 << 20;
/// How much of the file passes before the line is cut.
const CUT_AFTER_BYTES: u64 = 12 * MEBIBYTE;
/// What may be under way and is lost with a line: a window of the connection, a chunk that is not complete,
/// one that is not written, and all that is not snapshot.
const LOST_BYTES_MAX: u64 = 7 * MEBIBYTE;
/// More than snapshots are apart, so that the log behind the newest one begins further on than it began.
const SMALL_KEYS: u64 = 100;

/// Three nodes, one of which is stopped and lacks what the others have purged.
struct Behind {
    cluster: Cluster,
    scope: Scope,
    leader: u64,
    other: u64,
    behind: u64,
    /// Of what comes to the node that is behind.
    meter: Arc<Meter>,
}

impl Behind {
    async fn prepare() -> Self {
        let mut cluster = Cluster::start_with(3, |options| {
            options.snapshot_every_entries = 50;
            options.keep_entries = 5;
        })
        .await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        let behind = cluster.follower().await;
        cluster.stop_node(behind).await;
        let leader = cluster.leader().await;
        for number in 0..LARGE_KEYS {
            let value = vec![u8::try_from(number).unwrap(); usize::try_from(MEBIBYTE).unwrap()];
            write(cluster.node(leader), scope, &format!("large-{number}"), &value).await;
        }
        for number in 0..SMALL_KEYS {
            write(cluster.node(leader), scope, &format!("small-{number}"), b"x").await;
        }
        let leader = cluster.leader().await;
        let other = cluster.running().into_iter().find(|node| *node != leader).unwrap();
        for node in [leader, other] {
            until("a log that begins behind what the stopped node has", || {
                (cluster.node(node).status().purged > LogIndex(LARGE_KEYS + 30)).then_some(())
            })
            .await;
        }
        let meter = cluster.meter(behind);
        Self { cluster, scope, leader, other, behind, meter }
    }

    /// Whether the node that was behind was given a snapshot.
    fn is_replaced(&self) -> bool {
        self.cluster.heard(self.behind).replaced.load(Ordering::Relaxed) > 0
    }

    /// How many transfers to it have begun and not ended.
    fn unfinished(&self) -> usize {
        self.cluster.disk(self.behind).files().keys().filter(|name| name.ends_with(".part")).count()
    }

    /// Bytes of the leader's newest snapshot.
    fn snapshot_bytes(&self) -> u64 {
        let files = self.cluster.disk(self.leader).files();
        files.iter().rfind(|(name, _)| name.ends_with(".snap")).unwrap().1.len() as u64
    }

    /// Waits until the node that was behind holds what the others hold, and stops all of them.
    async fn converge(self) {
        for node in [self.leader, self.other, self.behind] {
            barrier(self.cluster.node(node)).await;
        }
        let nodes = [self.leader, self.other, self.behind].map(|node| self.cluster.node(node));
        assert_same_states(&nodes).await;
        let value = local(self.cluster.node(self.behind), self.scope, "large-7").unwrap();
        assert_eq!(value.len() as u64, MEBIBYTE);
        assert!(self.is_replaced(), "it caught up, but not by snapshot");
        until("an end of what is unfinished", || (self.unfinished() == 0).then_some(())).await;
        self.cluster.stop().await;
    }
}

#[test]
fn what_arrived_before_a_cut_is_not_sent_again() {
    each_seed(0..3, async || {
        let mut test = Behind::prepare().await;
        let passed_before = test.meter.passed_bytes();
        test.meter.cut_after(CUT_AFTER_BYTES, Wire::Whole);
        test.cluster.start_node(test.behind).await.unwrap();
        until("a cut", || (test.meter.cuts() == 1).then_some(())).await;
        barrier(test.cluster.node(test.behind)).await;

        let passed = test.meter.passed_bytes() - passed_before;
        let file = test.snapshot_bytes();
        assert!(file > LARGE_KEYS * MEBIBYTE, "{file} bytes are no snapshot of the whole state");
        assert!(passed >= file, "{passed} bytes passed for a file of {file}");
        assert!(
            passed <= file + LOST_BYTES_MAX,
            "{passed} bytes passed for a file of {file}, cut after {CUT_AFTER_BYTES}"
        );
        test.converge().await;
    });
}

#[test]
fn a_change_of_leaders_in_the_middle_of_a_transfer_converges() {
    each_seed(0..3, async || {
        let mut test = Behind::prepare().await;
        test.meter.cut_after(CUT_AFTER_BYTES, Wire::Closed);
        test.cluster.start_node(test.behind).await.unwrap();
        until("a cut", || (test.meter.cuts() == 1).then_some(())).await;
        assert_eq!(test.unfinished(), 1, "the transfer is not over");

        test.cluster.node(test.leader).transfer_leadership(Some(NodeId(test.other))).await.unwrap();
        until("another leader", || {
            test.cluster.node(test.other).leadership().borrow().ready_here.then_some(())
        })
        .await;
        write(test.cluster.node(test.other), test.scope, "meanwhile", b"x").await;
        assert!(!test.is_replaced());
        test.cluster.wire(test.behind, Wire::Whole);
        test.converge().await;
    });
}
