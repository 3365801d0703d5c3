//! What a snapshot holds, in numbers that people check.

use serde::{Deserialize, Serialize};

use crate::snapshot::record::{Piece, Record};

/// Records by kind. Those of which nobody asks how many there are count in `records` only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All of them.
    pub records: u64,
    /// Nodes that announced their addresses.
    pub members: u64,
    pub sessions: u64,
    /// Replies that sessions remember.
    pub replies: u64,
    pub jobs: u64,
    /// Tasks that somebody has heard of.
    pub tasks: u64,
    pub barriers: u64,
    pub keys: u64,
    /// Bytes of all keys and values.
    pub key_bytes: u64,
}

impl Counts {
    /// Counts one more.
    pub fn add(&mut self, record: &Record) {
        self.records += 1;
        match &record.0 {
            Piece::Member { .. } => self.members += 1,
            Piece::Session { .. } => self.sessions += 1,
            Piece::Reply { .. } => self.replies += 1,
            Piece::Job(_) => self.jobs += 1,
            Piece::Task(_) => self.tasks += 1,
            Piece::Barrier(_) | Piece::RuntimeBarrier { .. } => self.barriers += 1,
            Piece::Key { key, entry } => {
                self.keys += 1;
                self.key_bytes += (key.as_str().len() + entry.value.len()) as u64;
            }
            _ => {}
        }
    }
}
