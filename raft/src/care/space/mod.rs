//! Room on the disks, and what is refused for want of it.
//!
//! Every node measures its own disk ([`gauge`]) and keeps a reserve: room for one more snapshot, for the
//! journal and for sled, so that votes, deletions, changes of membership and snapshots go on. Followers
//! tell the leader ([`reports`]), and the leader refuses commands that make the state grow ([`admission`])
//! while its own disk, or those of so many others that no quorum has room, are down to the reserve
//! ([`verdict`]). One full follower alone refuses nothing: it only falls behind.
//!
//! Memory is another matter ([`admitted_bytes`]): every node has the whole state, so the leader knows what all of them hold.

mod admission;
mod admitted_bytes;
mod gauge;
mod reports;
mod verdict;

pub(crate) use admission::Admission;
pub(crate) use admitted_bytes::Admitted;
pub(crate) use gauge::Gauge;
pub(crate) use reports::Reports;

use serde::{Deserialize, Serialize};

/// A node's disk, as it tells the leader and its operators.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiskStatus {
    /// The data directory.
    pub directory: String,
    /// Bytes that may still be written to its file system; `u64::MAX` until they were measured.
    pub free_bytes: u64,
    /// Bytes that are kept for what must go on when the disk is full.
    pub reserve_bytes: u64,
    /// Whether the disk is down to the reserve.
    pub full: bool,
}
