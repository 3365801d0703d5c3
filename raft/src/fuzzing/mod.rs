//! For `tripod-fuzz` alone: what of this crate reads bytes of others, at its narrowest. Whatever is to hold is checked here,
//! by a panic, so that no private type shows.
//!
//! Values are drawn by a deserializer of the caller's, which knows none of the types either.

mod committed;
mod journal;
mod peer;
mod snapshot;

pub use committed::{check_committed, check_proposed, encode};
pub use journal::{RECORD_KINDS, journal_record, open_journal};
pub use peer::{PEER_MESSAGES, hear, peer_message};
pub use snapshot::{backup, check_snapshot, read_snapshot, record_frames, snapshot_record};
