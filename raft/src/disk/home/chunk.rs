//! How runs of entries become records: sled pays 10 to 36 us for a record whatever its size, so
//! entries that were appended together are stored together.
//!
//! A chunk is a run of entries of at most [`PART_BYTES`], or one larger entry cut into several
//! parts. A part is `version u8, parts u16 LE, body`; the joined bodies are, for every entry,
//! `length u32 LE, crc32c u32 LE of (length, bytes), bytes`. sled checks its own pages, but it
//! answers a bad one by forgetting everything behind it, so our checks must not rely on it.

use crate::base::codec;
use crate::base::types::Entry;

/// The format of a part.
const VERSION: u8 = 1;
/// Bytes of a part's body. A sled leaf holds up to about twenty values and is written as one
/// message; with this bound and [`super::sled_disk`]'s segment size it never goes to a blob file,
/// which sled would not make durable.
pub(crate) const PART_BYTES: usize = 15 << 10;
/// Version and number of parts.
const PART_HEADER: usize = 3;
/// Length and checksum.
const ENTRY_HEADER: usize = 8;

/// A run of entries, ready to be stored.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Index of the first entry.
    pub(crate) first: u64,
    /// Index of the last entry.
    pub(crate) last: u64,
    pub(crate) parts: Vec<Vec<u8>>,
}

/// Why a stored chunk cannot be read. Both fields end up in the operator's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    /// The first index that cannot be read.
    pub(crate) index: u64,
    pub(crate) problem: String,
}

/// Packs consecutive entries into chunks.
pub(crate) fn pack<'e>(entries: impl IntoIterator<Item = &'e Entry>) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut body = Vec::new();
    let mut span: Option<(u64, u64)> = None;
    for entry in entries {
        let index = entry.log_id.index;
        let start = body.len();
        push_entry(&mut body, entry);
        if body.len() > PART_BYTES && start > 0 {
            let own = body.split_off(start);
            let (first, last) = span.take().expect("a chunk with bytes has entries");
            chunks.push(finish(first, last, &body));
            body = own;
        }
        span = Some((span.map_or(index, |(first, _)| first), index));
    }
    if let Some((first, last)) = span {
        chunks.push(finish(first, last, &body));
    }
    chunks
}

fn push_entry(body: &mut Vec<u8>, entry: &Entry) {
    let start = body.len();
    body.resize(start + ENTRY_HEADER, 0);
    codec::encode_onto(body, entry);
    let length = u32::try_from(body.len() - start - ENTRY_HEADER).expect("an entry is below 4 GiB");
    let length = length.to_le_bytes();
    let crc = checksum(length, &body[start + ENTRY_HEADER..]);
    body[start..start + 4].copy_from_slice(&length);
    body[start + 4..start + ENTRY_HEADER].copy_from_slice(&crc.to_le_bytes());
}

fn checksum(length: [u8; 4], bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&length), bytes)
}

fn finish(first: u64, last: u64, body: &[u8]) -> Chunk {
    let bodies: Vec<&[u8]> = body.chunks(PART_BYTES).collect();
    let count = u16::try_from(bodies.len()).expect("an entry is below 65,535 parts of 15 KiB");
    let parts = bodies
        .into_iter()
        .map(|piece| {
            let mut part = Vec::with_capacity(PART_HEADER + piece.len());
            part.push(VERSION);
            part.extend_from_slice(&count.to_le_bytes());
            part.extend_from_slice(piece);
            part
        })
        .collect();
    Chunk { first, last, parts }
}

/// Joins the parts of the chunk that begins at `first` and reads its entries.
///
/// # Errors
/// [`Damage`] if a part is missing, a checksum is wrong, or the indexes have a hole.
pub(crate) fn unpack<P: AsRef<[u8]>>(first: u64, parts: &[P]) -> Result<Vec<Entry>, Damage> {
    let mut body = Vec::new();
    for part in parts {
        let (header, piece) = part
            .as_ref()
            .split_at_checked(PART_HEADER)
            .ok_or_else(|| damage(first, "has a part that is too short"))?;
        if header[0] != VERSION {
            return Err(damage(first, format!("has format {}, this program knows {VERSION}", header[0])));
        }
        let count = u16::from_le_bytes([header[1], header[2]]);
        if usize::from(count) != parts.len() {
            return Err(damage(first, format!("has {} of {count} parts", parts.len())));
        }
        body.extend_from_slice(piece);
    }
    let mut entries = Vec::new();
    let mut rest = body.as_slice();
    let mut index = first;
    while !rest.is_empty() {
        let (entry, behind) = pop_entry(index, rest)?;
        entries.push(entry);
        rest = behind;
        index += 1;
    }
    if entries.is_empty() {
        return Err(damage(first, "has no entry in its chunk"));
    }
    Ok(entries)
}

fn pop_entry(index: u64, body: &[u8]) -> Result<(Entry, &[u8]), Damage> {
    let (header, rest) =
        body.split_at_checked(ENTRY_HEADER).ok_or_else(|| damage(index, "has no complete header"))?;
    let length: [u8; 4] = header[..4].try_into().expect("four of eight bytes");
    let stored = u32::from_le_bytes(header[4..].try_into().expect("the other four bytes"));
    let length_bytes = u32::from_le_bytes(length) as usize;
    let (bytes, behind) = rest
        .split_at_checked(length_bytes)
        .ok_or_else(|| damage(index, format!("claims {length_bytes} bytes, {} are there", rest.len())))?;
    let computed = checksum(length, bytes);
    if computed != stored {
        return Err(damage(index, format!("has checksum {computed:08x}, stored is {stored:08x}")));
    }
    let entry: Entry = codec::decode(bytes).map_err(|error| damage(index, error.to_string()))?;
    if entry.log_id.index != index {
        return Err(damage(index, format!("holds index {} instead", entry.log_id.index)));
    }
    Ok((entry, behind))
}

fn damage(index: u64, problem: impl Into<String>) -> Damage {
    Damage { index, problem: problem.into() }
}
