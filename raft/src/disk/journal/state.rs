//! What the log is, but for its entries.

use serde::{Deserialize, Serialize};

use crate::base::types::{LogId, Vote};
use crate::disk::journal::record::Checkpoint;

/// The single values of a journalled log. Written at the beginning of every segment, so that no
/// earlier segment is needed for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogValues {
    pub(crate) vote: Option<Vote>,
    pub(crate) committed: Option<LogId>,
    pub(crate) purged: Option<LogId>,
    /// The last entry, or the last purged one.
    pub(crate) last: Option<LogId>,
    pub(crate) checkpoint: Checkpoint,
}

impl LogValues {
    /// The index that the next entry must have; any, for a log that is empty.
    pub(crate) fn next_index(&self) -> Option<u64> {
        self.last.map(|last| last.index + 1)
    }

    /// The first index that is needed from the journal: everything below is purged or in the home.
    pub(crate) fn first_needed(&self) -> u64 {
        behind(self.purged).max(behind(self.checkpoint.through))
    }

    /// Forgets what is behind `keep`.
    pub(crate) fn truncate_after(&mut self, keep: Option<LogId>) {
        let from = behind(keep);
        if behind(self.last) > from {
            self.last = keep;
        }
        if behind(self.checkpoint.through) > from {
            self.checkpoint.through = keep;
            self.checkpoint.moved = None;
        }
    }

    /// Forgets what is up to `upto`.
    pub(crate) fn purge(&mut self, upto: LogId) {
        self.purged = Some(upto);
        if behind(self.last) <= upto.index {
            self.last = Some(upto);
        }
    }
}

/// The index behind an id; 0 for none.
pub(crate) fn behind(id: Option<LogId>) -> u64 {
    id.map_or(0, |id| id.index + 1)
}
