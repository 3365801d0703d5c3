//! The types that this crate plugs into openraft, and short names for openraft's generic ones.

use std::fmt;

use bytes::Bytes;
use openraft::alias;
use serde::{Deserialize, Serialize};
use tripod_state::Reply;

use crate::base::runtime::Runtime;

openraft::declare_raft_types!(
    /// Everything openraft must know about us; whatever is not named here is its default.
    pub(crate) Types:
        D = LogCommand,
        R = Response,
        NodeId = u64,
        Node = Peer,
        AsyncRuntime = Runtime,
);

pub(crate) type Entry = alias::EntryOf<Types>;
pub(crate) type Vote = alias::VoteOf<Types>;
pub(crate) type LogId = alias::LogIdOf<Types>;
pub(crate) type Membership = alias::StoredMembershipOf<Types>;
pub(crate) type SnapshotMeta = alias::SnapshotMetaOf<Types>;

/// What an ordinary log entry holds.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogCommand {
    /// The wall clock of the leader that appended the entry, milliseconds since the epoch.
    pub(crate) now_ms: u64,
    /// An encoded envelope. It was encoded once, by the node that received the call, and is opaque
    /// to the log, to the wire and to the disk.
    pub(crate) payload: Bytes,
}

impl fmt::Debug for LogCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "command of {} bytes at {}", self.payload.len(), self.now_ms)
    }
}

impl fmt::Display for LogCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What applying an entry gives back. `None` for entries that are Raft's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Response {
    pub(crate) reply: Option<Reply>,
}

/// A member as the membership entry in the log describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Peer {
    /// `HOST:PORT` of its peer transport.
    pub(crate) address: String,
}

/// No log reaches this index or this term: a million entries in a second for 146,000 years. Whoever reads a log counts on from
/// where it ends, so what is read of files is below it.
pub(crate) const COUNTED_MAX: u64 = 1 << 62;

/// Terms that a vote may be ahead of the last entry in a node's log: an election in each second for 136 years.
pub(crate) const TERMS_AHEAD_MAX: u64 = 1 << 32;

/// About how many bytes of memory an entry holds.
pub(crate) fn entry_bytes(entry: &Entry) -> usize {
    /// The log id, the stamp and the deque's slot.
    const OVERHEAD: usize = 96;
    match &entry.payload {
        openraft::EntryPayload::Normal(command) => command.payload.len() + OVERHEAD,
        openraft::EntryPayload::Blank => OVERHEAD,
        openraft::EntryPayload::Membership(_) => 4 * OVERHEAD,
    }
}
