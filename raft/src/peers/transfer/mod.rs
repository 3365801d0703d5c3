//! Moving a snapshot file to a follower: the question how much of it is there already, what it is, then
//! checked chunks. There is no deadline for the whole, which may be large, but one for every chunk, on both
//! sides: a peer that went silent must not hold the leader's task, nor the follower's disk.
//!
//! [`send`](mod@send) goes on behind what arrived before the connection broke; [`receive`](mod@receive) keeps
//! that, as long as it is asked for the same file, and verifies the whole before anybody reads it.

mod receive;
mod send;

#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::base::types::{LogId, Vote};
use crate::snapshot::FileId;

pub(crate) use receive::{Received, held, receive};
pub(crate) use send::send;

/// Bytes of a chunk.
const CHUNK_BYTES: usize = 1 << 20;
/// Chunks that are read ahead of the network.
const CHUNKS_AHEAD: usize = 4;
/// How long one chunk may take.
const CHUNK_IDLE: Duration = Duration::from_secs(10);
/// How long the receiver may take to verify and load the complete file.
pub(crate) const INSTALL_DEADLINE: Duration = Duration::from_mins(10);

/// Comes before the chunks. Its encoding is frozen: what else the receiver may need travels beside it, in
/// fields that an older receiver skips.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Offer {
    /// The leader's vote.
    pub(crate) vote: Vote,
    /// The last entry in the snapshot.
    pub(crate) last_log_id: Option<LogId>,
    /// Bytes of the file.
    pub(crate) bytes: u64,
}

impl Offer {
    /// The file with this seal, unless the sender does not tell it and so cannot resume.
    fn file(&self, seal: &Bytes) -> Option<FileId> {
        let id = FileId { last_log_id: self.last_log_id, bytes: self.bytes, seal: seal.clone() };
        (!seal.is_empty()).then_some(id)
    }
}
