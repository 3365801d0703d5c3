//! A state as a stream of records: what a snapshot file holds, in a defined order. Big tables are
//! many records, so that no record is much larger than one value.

mod counts;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod unpresumed;
pub(crate) mod write;

pub use counts::Counts;
pub use record::Record;

/// Why a stream of records is no state.
#[derive(Debug, thiserror::Error)]
#[error("snapshot record {position} is {problem}")]
pub struct Malformed {
    /// How many records came before it.
    pub position: u64,
    pub problem: String,
}
