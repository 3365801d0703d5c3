//! Segments of the journal.

use serde::Serialize;
use serde::de::{DeserializeOwned, Deserializer};

use crate::base::codec;
use crate::base::types::{Entry, LogId, Vote};
use crate::disk::journal::{JournalValues, recover_from};

/// The highest kind of a record.
pub const RECORD_KINDS: u8 = 7;

/// The content of a record of that kind, which is drawn; `None` if what was drawn is none.
pub fn journal_record<'de, D: Deserializer<'de>>(kind: u8, drawn: D) -> Option<Vec<u8>> {
    fn made<'de, T: DeserializeOwned + Serialize, D: Deserializer<'de>>(drawn: D) -> Option<Vec<u8>> {
        T::deserialize(drawn).ok().map(|value| codec::encode(&value))
    }
    match kind {
        1 => made::<JournalValues, D>(drawn),
        2 => made::<Entry, D>(drawn),
        3 => made::<Vote, D>(drawn),
        4 => made::<Option<LogId>, D>(drawn),
        5 | 6 => made::<LogId, D>(drawn),
        _ => made::<crate::disk::journal::JournalCheckpoint, D>(drawn),
    }
}

/// Starts on a journal of one segment whose frames, whole and in order, have these bodies, and behind which `rest` stands.
pub fn open_journal(bodies: &[&[u8]], rest: &[u8]) {
    // A refusal is right, too.
    let _ = recover_from(bodies, rest);
}
