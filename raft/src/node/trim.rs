//! How much of the log is kept behind a snapshot, for nodes that were away a while.
//!
//! openraft bounds that by a number of entries alone. Entries may have megabytes, so here it is bounded in bytes,
//! too, and openraft is told what to purge after every snapshot. It waits with that as long as a follower is being
//! sent what is to go.

use openraft::async_runtime::WatchReceiver as _;
use tokio_util::sync::CancellationToken;

use crate::apply::engine::Raft;
use crate::base::options::Options;
use crate::base::types::LogId;
use crate::log::LogStore;
use crate::snapshot::SnapshotStore;

/// Bytes of entries that are kept behind a snapshot, at most: what lies between two snapshots at most, so that
/// the log is never longer than two of these.
const KEEP_BYTES_MAX: u64 = if cfg!(test) { 1 << 20 } else { 64 << 20 };
/// Entries that are worth a purge for their number alone.
const PURGE_ENTRIES: u64 = 1024;

/// What is kept.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    entries: u64,
    /// Entries that are purged at a time, if their bytes do not matter.
    step: u64,
}

/// Shortens the log of a node.
pub(super) struct Trimmer {
    raft: Raft,
    log: LogStore,
    snapshots: SnapshotStore,
    bounds: Bounds,
}

impl Trimmer {
    pub(super) fn new(options: &Options, raft: Raft, log: LogStore, snapshots: SnapshotStore) -> Self {
        let step = PURGE_ENTRIES.min(options.snapshot_every_entries.max(1));
        Self { raft, log, snapshots, bounds: Bounds { entries: options.keep_entries, step } }
    }

    /// Trims after every snapshot, until the node or its engine stops.
    pub(super) async fn run(self, stop: CancellationToken) {
        let trimming = async {
            let mut reach = self.snapshots.reach();
            loop {
                let newest = *reach.borrow_and_update();
                if let Some(newest) = newest
                    && !self.trim(newest).await
                {
                    return;
                }
                if reach.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = trimming => {}
            () = stop.cancelled() => {}
        }
    }

    /// Has everything purged that is not kept behind this snapshot, as soon as the engine knows of it. False if
    /// the engine has stopped.
    async fn trim(&self, snapshot: LogId) -> bool {
        let mut metrics = self.raft.metrics();
        while metrics.borrow_watched().snapshot < Some(snapshot) {
            if metrics.changed().await.is_err() {
                return false;
            }
        }
        let first_held = self.log.purged().map_or(0, |purged| purged.index + 1);
        let within = self.log.first_within(snapshot.index, KEEP_BYTES_MAX);
        match self.bounds.first_kept(snapshot.index, first_held, within) {
            Some(first) => self.raft.trigger().purge_log(first - 1).await.is_ok(),
            None => true,
        }
    }
}

impl Bounds {
    /// The first entry to keep, if any before it is worth a purge. `within`: from which on the bytes are few
    /// enough.
    fn first_kept(&self, snapshot: u64, first_held: u64, within: u64) -> Option<u64> {
        let by_number = (snapshot + 1).saturating_sub(self.entries);
        let is_due = by_number >= first_held + self.step || within > first_held;
        Some(by_number.max(within)).filter(|first| is_due && *first > first_held)
    }
}

#[cfg(test)]
mod tests {
    use tripod_wait::until;

    use super::*;
    use crate::test_cluster::{Cluster, create_job, each_seed, level_raised, write};

    const BOUNDS: Bounds = Bounds { entries: 100, step: 10 };

    #[test]
    fn so_many_entries_are_kept_and_purged_in_steps() {
        assert_eq!(BOUNDS.first_kept(50, 0, 0), None);
        assert_eq!(BOUNDS.first_kept(108, 0, 0), None);
        assert_eq!(BOUNDS.first_kept(109, 0, 0), Some(10));
        assert_eq!(BOUNDS.first_kept(118, 10, 0), None);
        assert_eq!(BOUNDS.first_kept(119, 10, 0), Some(20));
        assert_eq!(Bounds { entries: 0, step: 1 }.first_kept(7, 7, 0), Some(8));
        assert_eq!(Bounds { entries: 0, step: 1 }.first_kept(7, 8, 0), None);
    }

    #[test]
    fn what_has_too_many_bytes_goes_however_few_entries_it_is() {
        assert_eq!(BOUNDS.first_kept(50, 0, 1), Some(1));
        assert_eq!(BOUNDS.first_kept(50, 40, 45), Some(45));
        assert_eq!(BOUNDS.first_kept(50, 45, 45), None);
        assert_eq!(BOUNDS.first_kept(50, 0, 51), Some(51));
        assert_eq!(BOUNDS.first_kept(200, 0, 5), Some(101));
    }

    #[test]
    fn a_log_of_large_values_is_shorter_than_its_number_of_entries_allows() {
        each_seed(0..3, async || {
            let value = vec![7; 40_000];
            let cluster = Cluster::start_with(1, |options| {
                options.snapshot_every_entries = 50;
                options.keep_entries = 10_000;
            });
            let cluster = cluster.await;
            cluster.leader().await;
            let node = cluster.node(1);
            let scope = create_job(node).await;
            // The small entry that raises the level must not be one of those that are counted.
            level_raised(&cluster).await;
            for number in 0..120 {
                write(node, scope, &format!("key-{number}"), &value).await;
            }
            let kept = until("a log that was shortened behind its second snapshot", || {
                let status = node.status();
                let is_trimmed = status.snapshot.0 >= 90 && status.purged.0 > status.snapshot.0 / 2;
                is_trimmed.then(|| status.snapshot.0 - status.purged.0)
            });
            let kept = kept.await;
            let most = KEEP_BYTES_MAX / value.len() as u64;
            assert!((most / 2..=most).contains(&kept), "{kept} entries of {} bytes are kept", value.len());
            cluster.stop().await;
        });
    }
}
