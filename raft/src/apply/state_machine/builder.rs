//! Makes a snapshot of the state as it was at one moment, while entries go on being applied.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use openraft::storage::RaftSnapshotBuilder;

use super::{Machine, Shared};
use crate::base::types::Types;
use crate::snapshot::{Snapshot, SnapshotFile};

/// How often a snapshot for which the disk has no room is tried again.
const FULL_RETRY: Duration = Duration::from_secs(1);

/// Holds a state as it was when the snapshot began. Making it was O(1).
pub(crate) struct Builder {
    pub(super) machine: Machine,
    pub(super) shared: Arc<Shared>,
}

impl RaftSnapshotBuilder<Types> for Builder {
    type SnapshotData = SnapshotFile;

    /// Waits while the disk is full: openraft takes any error of a snapshot for the end of the node.
    async fn build_snapshot(&mut self) -> io::Result<Snapshot> {
        let mut told = false;
        loop {
            let error = match self.write().await {
                Err(error) if is_full(&error) && !self.shared.closing.load(Ordering::Relaxed) => error,
                outcome => return outcome,
            };
            if !told {
                tracing::warn!(%error, "T3201 disk-full: no room for a snapshot; it is tried again until there is");
                told = true;
            }
            tokio::time::sleep(FULL_RETRY).await;
        }
    }
}

impl Builder {
    async fn write(&self) -> io::Result<Snapshot> {
        let (machine, shared) = (self.machine.clone(), self.shared.clone());
        let work = shared.snapshots.work().clone();
        let built = work.run(move || {
            if let Some(note) = &shared.pin_note {
                note.keep(machine.levels.pin)?;
            }
            let (header, state) = machine.frozen(&shared.cluster_id).into_header();
            let written = shared.snapshots.write(&header, &state)?;
            shared.snapshots.tally().built();
            Ok(written)
        });
        built.await?
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
