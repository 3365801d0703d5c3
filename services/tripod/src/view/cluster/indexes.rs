//! Log indexes as they are shown.
//!
//! The log of a restored cluster begins at a large round index (`tripod_raft::backup::INDEX_STEP`). Of entries before
//! that there are none, so nobody lags by them, and a table is easier to read without them. JSON has indexes as they are.

use tripod_client::wire;
use tripod_raft::backup::INDEX_STEP;

use super::node::grouped;

/// Where the log of the cluster begins: 0, or where a restoration put it.
pub(super) fn base(told: &[&wire::StatusResponse]) -> u64 {
    let last = committed(told);
    last - last % INDEX_STEP
}

/// The last committed entry that anybody knows of.
pub(super) fn committed(told: &[&wire::StatusResponse]) -> u64 {
    told.iter().map(|status| status.committed_index).max().unwrap_or(0)
}

/// Committed entries that are not on a node which has everything up to `index`.
pub(super) fn lag(told: &[&wire::StatusResponse], index: u64) -> u64 {
    committed(told).saturating_sub(index.max(base(told)))
}

/// An index, counted from the base if it is behind it.
pub(super) fn shown(index: u64, base: u64) -> String {
    grouped(index.checked_sub(base).unwrap_or(index))
}

/// What makes the indexes of a table understood; `None`: nothing need.
pub(super) fn legend(base: u64) -> Option<String> {
    (base > 0).then(|| {
        format!("indexes are counted from {}, where this cluster was restored from a backup", grouped(base))
    })
}
