//! What other nodes have acknowledged to this one. The engine knows it of the present leadership only, so what is
//! committed of it is remembered for as long as the process runs: it can never be taken back, and a leader of earlier
//! can tell a node what the leader of now has not seen.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver as _;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::apply::engine::{Metrics, Raft};

/// The shortest time between two looks: figures change with every append.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Tells it. Clones know the same.
#[derive(Clone)]
pub(crate) struct Acknowledged {
    raft: Raft,
    /// The highest index by node.
    known: Arc<Mutex<BTreeMap<u64, u64>>>,
}

impl Acknowledged {
    /// Remembers until the node stops.
    pub(crate) fn watch(raft: &Raft, stop: CancellationToken) -> Self {
        let this = Self { raft: raft.clone(), known: Arc::default() };
        let watching = this.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = watching.follow() => {}
                () = stop.cancelled() => {}
            }
        });
        this
    }

    async fn follow(&self) {
        let mut metrics = self.raft.metrics();
        loop {
            remember(&mut self.known.lock(), &metrics.borrow_and_update());
            if metrics.changed().await.is_err() {
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The last entry that a node is known to have acknowledged.
    pub(crate) fn by(&self, node: u64) -> Option<u64> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let replication = metrics.replication.as_ref();
        let now = replication.and_then(|all| all.get(&node).copied().flatten()).map(|id| id.index);
        now.max(self.remembered(node))
    }

    pub(crate) fn remembered(&self, node: u64) -> Option<u64> {
        self.known.lock().get(&node).copied()
    }
}

/// Takes in what a leader's figures say, and forgets who is no member.
fn remember(known: &mut BTreeMap<u64, u64>, metrics: &Metrics) {
    let (Some(replication), Some(committed)) = (&metrics.replication, metrics.local_committed) else {
        return;
    };
    known.retain(|node, _| replication.contains_key(node));
    for (node, matched) in replication {
        if let Some(matched) = matched {
            let index = matched.index.min(committed.index);
            let highest = known.entry(*node).or_default();
            *highest = index.max(*highest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::test_entries::id;

    fn leads(matched: &[(u64, u64)], committed: u64) -> Metrics {
        let matched = matched.iter().map(|(node, index)| (*node, Some(id(3, *index))));
        let mut metrics = Metrics::new_initial(1);
        (metrics.replication, metrics.local_committed) = (Some(matched.collect()), Some(id(3, committed)));
        metrics
    }

    #[test]
    fn what_is_committed_is_remembered_and_what_may_be_taken_back_is_not() {
        let mut known = BTreeMap::new();
        remember(&mut known, &leads(&[(2, 9), (3, 5)], 7));
        assert_eq!(known, BTreeMap::from([(2, 7), (3, 5)]));
        remember(&mut known, &Metrics::new_initial(1));
        remember(&mut known, &leads(&[(2, 1), (3, 8)], 8));
        assert_eq!(known, BTreeMap::from([(2, 7), (3, 8)]), "a leader of later begins with nothing");
        remember(&mut known, &leads(&[(3, 8)], 8));
        assert_eq!(known, BTreeMap::from([(3, 8)]), "node 2 was removed");
    }
}
