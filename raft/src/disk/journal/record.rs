//! What a frame's body holds: records, one behind the other, each `type u8, length u32 LE, bytes`.
//! The frame's checksum covers them all.

use serde::{Deserialize, Serialize};

use crate::base::codec;
use crate::base::types::{COUNTED_MAX, Entry, LogId, Vote};
use crate::disk::journal::frame::SegmentNumber;
use crate::disk::journal::state::LogValues;

/// Bytes of a record's type and length.
const RECORD_HEADER: usize = 5;
const ENTRY_HEADER: usize = 4;

/// What the home of the log is known to hold, and so what the journal need not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// The home holds, durably, every entry up to this one that is not purged.
    pub(crate) through: Option<LogId>,
    /// The run of entries that was moved last.
    pub(crate) moved: Option<Moved>,
    /// The first segment that a start must read.
    pub(crate) oldest: SegmentNumber,
}

/// A run of entries in the home, and what they must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moved {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// [`chained`] over the run.
    pub(crate) chain: u64,
}

/// The next link of a hash over consecutive entries.
pub(crate) fn chained(chain: u64, entry: &Entry) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(&codec::encode(entry), chain)
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record<'b> {
    /// Everything that the segments before this one say, but for the entries.
    Base(LogValues),
    /// Consecutive entries.
    Entries(EntriesRecord<'b>),
    Vote(Vote),
    TruncateAfter(Option<LogId>),
    Purge(LogId),
    Committed(LogId),
    Checkpoint(Checkpoint),
}

/// Encoded entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntriesRecord<'b> {
    bytes: &'b [u8],
}

/// The type byte of a record of entries.
pub(crate) const TYPE_ENTRIES: u8 = 2;

impl Record<'_> {
    /// Appends the record, whatever it is but entries, which are encoded one by one.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (kind, bytes) = match self {
            Self::Base(values) => (1, codec::encode(values)),
            Self::Entries(entries) => (TYPE_ENTRIES, entries.bytes.to_vec()),
            Self::Vote(vote) => (3, codec::encode(vote)),
            Self::TruncateAfter(keep) => (4, codec::encode(keep)),
            Self::Purge(upto) => (5, codec::encode(upto)),
            Self::Committed(id) => (6, codec::encode(id)),
            Self::Checkpoint(checkpoint) => (7, codec::encode(checkpoint)),
        };
        let start = begin(out, kind);
        out.extend_from_slice(&bytes);
        finish(out, start);
    }

    /// Whether one can count on from all indexes that it names. Entries have ends instead.
    fn check(&self) -> Result<(), String> {
        let index = |id: &Option<LogId>| id.map_or(0, |id| id.index);
        let highest = match self {
            Self::Base(values) => {
                let named = [&values.committed, &values.purged, &values.last].map(index);
                named.into_iter().max().unwrap_or(0).max(values.checkpoint.highest())
            }
            Self::Checkpoint(checkpoint) => checkpoint.highest(),
            Self::TruncateAfter(keep) => index(keep),
            Self::Purge(id) | Self::Committed(id) => id.index,
            Self::Entries(_) | Self::Vote(_) => 0,
        };
        countable(highest)
    }
}

impl Checkpoint {
    /// The highest index that it names.
    fn highest(&self) -> u64 {
        let moved = self.moved.map_or(0, |moved| moved.first.max(moved.last));
        moved.max(self.through.map_or(0, |id| id.index))
    }
}

fn countable(index: u64) -> Result<(), String> {
    if index < COUNTED_MAX { Ok(()) } else { Err(format!("names index {index}, which no log reaches")) }
}

/// Begins a record of unknown length; [`finish`] wants the answer.
pub(crate) fn begin(out: &mut Vec<u8>, kind: u8) -> usize {
    out.push(kind);
    out.extend_from_slice(&[0; 4]);
    out.len()
}

/// Writes the length of the record that was begun at `start`.
pub(crate) fn finish(out: &mut [u8], start: usize) {
    let length = u32::try_from(out.len() - start).expect("a group of entries is below 4 GiB");
    out[start - 4..start].copy_from_slice(&length.to_le_bytes());
}

/// Appends an entry to a record of entries.
pub(crate) fn push_entry(out: &mut Vec<u8>, entry: &Entry) {
    let start = out.len() + ENTRY_HEADER;
    out.extend_from_slice(&[0; ENTRY_HEADER]);
    codec::encode_onto(out, entry);
    finish(out, start);
}

impl EntriesRecord<'_> {
    /// The entries, decoded.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Result<Entry, String>> + '_ {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let Some((bytes, behind)) = sized(rest) else {
                rest = &[];
                return Some(Err("has an entry that is longer than its record".into()));
            };
            rest = behind;
            Some(codec::decode(bytes).map_err(|error| format!("has an entry that cannot be read: {error}")))
        })
    }

    /// The ids of the first and the last entry; the indexes between them have no hole.
    pub(crate) fn ends(&self) -> Result<(LogId, LogId), String> {
        let mut ends: Option<(&[u8], &[u8])> = None;
        let mut count = 0;
        let mut rest = self.bytes;
        while !rest.is_empty() {
            let (bytes, behind) = sized(rest).ok_or("has an entry that is longer than its record")?;
            ends = Some((ends.map_or(bytes, |(first, _)| first), bytes));
            count += 1;
            rest = behind;
        }
        let (first, last) = ends.ok_or("has a record of no entries")?;
        let id = |bytes| codec::decode::<Entry>(bytes).map(|entry| entry.log_id);
        let malformed = |error| format!("has an entry that cannot be read: {error}");
        let (first, last) = (id(first).map_err(malformed)?, id(last).map_err(malformed)?);
        if first.index.checked_add(count - 1) != Some(last.index) {
            return Err(format!("has {count} entries from {} to {}", first.index, last.index));
        }
        countable(last.index)?;
        Ok((first, last))
    }
}

/// Splits off bytes behind their length.
fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(4)?;
    rest.split_at_checked(u32::from_le_bytes(length.try_into().expect("four bytes")) as usize)
}

/// The record at an offset of a body, and the offset of the next.
///
/// # Errors
/// What is wrong with it, in words. The body's checksum was right, so this is an error of a program.
pub(crate) fn parse(body: &[u8], at: usize) -> Result<(Record<'_>, usize), String> {
    let (&kind, rest) = body.get(at..).and_then(<[u8]>::split_first).ok_or("ends within a record")?;
    let (bytes, _) = sized(rest).ok_or("has a record that is longer than its frame")?;
    let malformed = |error: codec::CodecError| format!("has a record that cannot be read: {error}");
    let record = match kind {
        1 => Record::Base(codec::decode(bytes).map_err(malformed)?),
        TYPE_ENTRIES => Record::Entries(EntriesRecord { bytes }),
        3 => Record::Vote(codec::decode(bytes).map_err(malformed)?),
        4 => Record::TruncateAfter(codec::decode(bytes).map_err(malformed)?),
        5 => Record::Purge(codec::decode(bytes).map_err(malformed)?),
        6 => Record::Committed(codec::decode(bytes).map_err(malformed)?),
        7 => Record::Checkpoint(codec::decode(bytes).map_err(malformed)?),
        other => return Err(format!("has a record of type {other}, which this program does not know")),
    };
    record.check()?;
    Ok((record, at + RECORD_HEADER + bytes.len()))
}

#[cfg(test)]
mod tests {
    use openraft::impls::leader_id_adv::LeaderId;

    use super::*;

    #[test]
    fn an_index_from_which_nobody_can_count_on_is_refused_and_not_added_to() {
        let at = |index| LogId::new(LeaderId { term: 3, node_id: 1 }, index);
        let records = |index| {
            let through = Some(at(index));
            let checkpoint = Checkpoint { through, moved: None, oldest: SegmentNumber(1) };
            let values = LogValues { vote: None, committed: None, purged: through, last: None, checkpoint };
            [
                Record::Base(values),
                Record::TruncateAfter(through),
                Record::Purge(at(index)),
                Record::Committed(at(index)),
                Record::Checkpoint(checkpoint),
            ]
        };
        for record in records(COUNTED_MAX - 1) {
            let mut body = Vec::new();
            record.encode(&mut body);
            assert!(parse(&body, 0).is_ok(), "{record:?}");
        }
        for record in records(u64::MAX) {
            let mut body = Vec::new();
            record.encode(&mut body);
            assert!(parse(&body, 0).unwrap_err().contains("which no log reaches"), "{record:?}");
        }
        let mut entries = Vec::new();
        let entry = |index| Entry { log_id: at(index), payload: openraft::EntryPayload::Blank };
        push_entry(&mut entries, &entry(u64::MAX));
        assert!(EntriesRecord { bytes: &entries }.ends().unwrap_err().contains("which no log reaches"));
    }
}
