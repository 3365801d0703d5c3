//! Entries for tests.

use bytes::Bytes;
use openraft::alias;
use openraft::entry::RaftEntry as _;
use openraft::vote::RaftLeaderId as _;

use crate::base::types::{Entry, LogCommand, LogId, Types};

/// A log id of node 1.
pub(crate) fn id(term: u64, index: u64) -> LogId {
    LogId::new(alias::LeaderIdOf::<Types>::new(term, 1).to_committed(), index)
}

/// An entry with a payload of so many bytes, which tell its index.
pub(crate) fn entry(term: u64, index: u64, bytes: usize) -> Entry {
    let fill = u8::try_from(index % 251).unwrap();
    let command = LogCommand { now_ms: index, payload: Bytes::from(vec![fill; bytes]) };
    Entry::new_normal(id(term, index), command)
}

/// Entries of one term and size.
pub(crate) fn entries(term: u64, indexes: std::ops::Range<u64>, bytes: usize) -> Vec<Entry> {
    indexes.map(|index| entry(term, index, bytes)).collect()
}
