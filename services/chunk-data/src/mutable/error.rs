//! Why a mutable chunk is not read or written.

use tripod_proto::code::Code;

use crate::index::OutOfRange;

/// Why a mutable chunk is not read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MutableError {
    #[error(
        "the epoch of chunk {key:?} is {is}, and the call is for {asked}; next: ask the scheduler for the tileable"
    )]
    Epoch { key: String, asked: u64, is: u64 },
    #[error("epoch {epoch} of chunk {key:?} is sealed: nothing is written any more")]
    Sealed { key: String, epoch: u64 },
    /// There may be room later.
    #[error(
        "no room for {bytes} bytes of mutable chunks: {held_bytes} of {quota_bytes} are taken; next: seal or delete some, \
         or give the store more with --mutable-mib"
    )]
    Quota { bytes: u64, held_bytes: u64, quota_bytes: u64 },
    #[error("this store has {0} mutable chunks, which are all that it takes")]
    Chunks(usize),
    #[error("{0}")]
    Illegal(String),
    #[error("the batch is no part of the chunk: {0}")]
    OutOfRange(String),
    #[error(
        "batch {batch_no} of client {client_id:?} was another one before; next: give each batch its own number"
    )]
    Reused { client_id: String, batch_no: u64 },
    #[error("{}: records of chunk {key:?} are damaged: {why}", Code::RecordsDamaged)]
    Damaged { key: String, why: String },
    #[error(
        "chunk {key:?} cannot be made durable: {why}; the batch may count or not, so send it with the same number"
    )]
    Disk { key: String, why: String },
    /// A copy that lacks what was before.
    #[error("this copy has {next} batches")]
    Behind { next: u64 },
    #[error("the copies of chunk {key:?} differ at batch {seq}")]
    Diverged { key: String, seq: u64 },
}

impl From<OutOfRange> for MutableError {
    fn from(error: OutOfRange) -> Self {
        Self::OutOfRange(error.to_string())
    }
}
