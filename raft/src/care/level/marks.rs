//! What the data directory says of the feature level that a build must support to start on it.
//!
//! The journal may hold newer entries for a while after the level was lowered, so a snapshot is asked for that
//! covers them; when it is there, the directory says that an older build may have it.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tripod_state::ids::FeatureLevel;

use super::Own;
use crate::apply::engine::Raft;
use crate::disk::Work;
use crate::disk::identity::{self, Identity};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Keeps the mark of one node.
pub(crate) struct Marks {
    pub(crate) data: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) own: Own,
    pub(crate) raft: Raft,
    pub(crate) work: Work,
}

impl Marks {
    /// Looks until the node stops.
    pub(crate) async fn run(self, stop: CancellationToken) {
        tokio::select! {
            () = self.keep() => {}
            () = stop.cancelled() => {}
        }
    }

    async fn keep(&self) {
        let (mut marked, mut asked_at) = (None, None);
        loop {
            let (level, needed) = (self.own.level(), self.own.machine.data_level());
            if needed > level {
                // Once for what is there to be covered: the engine takes its time.
                let applied = self.own.machine.levels(|levels| levels.newest_above(level));
                if asked_at != Some(applied) && self.raft.trigger().snapshot().await.is_ok() {
                    asked_at = Some(applied);
                }
            }
            if marked != Some(needed) && self.mark(needed).await {
                self.own.marked.store(needed.0, Ordering::Relaxed);
                marked = Some(needed);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Whether it is written.
    async fn mark(&self, needed: FeatureLevel) -> bool {
        let (data, identity, work) = (self.data.clone(), self.identity.clone(), self.work.clone());
        let written = self.work.run(move || match work {
            Work::Threads => identity::mark(&data, &identity, needed),
            Work::Inline(disk) => {
                disk.mark(needed);
                Ok(())
            }
        });
        let written = written.await;
        match written.and_then(|written| written) {
            Ok(()) => true,
            Err(error) => {
                // It protects from a mistake only, and is tried again.
                tracing::warn!(%error, "the directory does not say which feature level it needs");
                false
            }
        }
    }
}
