//! What a segment's bytes look like.
//!
//! A segment begins with a [`SegmentHead`], in a slot of [`ALIGN`] bytes. Behind it stand frames, each
//! at a multiple of [`ALIGN`]: a header of [`HEADER_BYTES`] and a body. One frame is one group of
//! changes, written by one write and made durable by one flush *before* the next one is written. So
//! the header of frame n says two things: what follows it, and that every frame below n was durable
//! once. A **seal** is a header without a body that says only the latter.
//!
//! Every checksum begins with a salt made of the log's id and the segment's number, so that nothing
//! that a recycled file held before, and nothing of another log, is ever taken for a frame.
//!
//! | frame header, little endian | bytes |
//! |---|---|
//! | salt of the segment | 0..4 |
//! | kind: 1 frame, 2 seal | 4 |
//! | zero | 5..8 |
//! | number | 8..16 |
//! | length of the body | 16..20 |
//! | CRC-32C of salt and body | 20..24 |
//! | zero | 24..28 |
//! | CRC-32C of salt and bytes 0..28 | 28..32 |

use std::fmt;

use rand::RngExt as _;

use crate::base::chance::Chance;

/// Frames begin at multiples of this. Bounds the search for frames behind a damaged one.
pub(crate) const ALIGN: u64 = 64;
/// Bytes of a frame's header.
pub(crate) const HEADER_BYTES: usize = 32;
/// The format that this program writes.
const VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"tripod-j";
const KIND_FRAME: u8 = 1;
const KIND_SEAL: u8 = 2;

/// The random name of one journal. Written in every segment and in the home of the log, so that
/// neither is ever paired with another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JournalId(pub(crate) u128);

impl JournalId {
    /// An id that no other journal has.
    pub(crate) fn random() -> Self {
        Self(Chance.random())
    }
}

/// The number of a segment, from 1 on; also its place in the order of segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(crate) struct SegmentNumber(pub(crate) u64);

impl SegmentNumber {
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The name of the segment's file.
    pub(crate) fn file_name(self) -> String {
        format!("{:016x}.segment", self.0)
    }

    /// The segment whose file has this name.
    pub(crate) fn of_file(name: &str) -> Option<Self> {
        let digits = name.strip_suffix(".segment")?;
        let number = u64::from_str_radix(digits, 16).ok().map(Self)?;
        (number.file_name() == name).then_some(number)
    }
}

impl fmt::Display for SegmentNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a frame, counted through all segments, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FrameNumber(pub(crate) u64);

impl FrameNumber {
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// What makes checksums of one segment of one journal different from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Salt(u32);

impl Salt {
    pub(crate) fn new(journal: JournalId, segment: SegmentNumber) -> Self {
        let crc = crc32c::crc32c(&journal.0.to_le_bytes());
        Self(crc32c::crc32c_append(crc, &segment.0.to_le_bytes()))
    }

    fn checksum(self, bytes: &[u8]) -> u32 {
        crc32c::crc32c_append(self.0, bytes)
    }
}

/// The first bytes of a segment that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHead {
    pub(crate) version: u32,
    pub(crate) journal: JournalId,
    pub(crate) segment: SegmentNumber,
    /// Bytes that the file had, durably, when this was written. It may have grown since.
    pub(crate) size_bytes: u64,
}

impl SegmentHead {
    const BYTES: usize = 48;

    pub(crate) fn new(journal: JournalId, segment: SegmentNumber, size_bytes: u64) -> Self {
        Self { version: VERSION, journal, segment, size_bytes }
    }

    /// Whether this program can read what follows.
    pub(crate) fn is_readable(self) -> bool {
        self.version == VERSION
    }

    /// The head as it is written, [`ALIGN`] bytes.
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.journal.0.to_le_bytes());
        out.extend_from_slice(&self.segment.0.to_le_bytes());
        out.extend_from_slice(&self.size_bytes.to_le_bytes());
        let crc = crc32c::crc32c(&out[start..]);
        out.extend_from_slice(&crc.to_le_bytes());
        pad(out);
    }

    /// Reads a head; `None` if there is none, or none that is whole.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..Self::BYTES)?;
        let whole = bytes[..8] == MAGIC && crc32c::crc32c(&bytes[..44]) == word(bytes, 44);
        whole.then(|| Self {
            version: word(bytes, 8),
            journal: JournalId(u128::from_le_bytes(bytes[12..28].try_into().expect("16 bytes"))),
            segment: SegmentNumber(long(bytes, 28)),
            size_bytes: long(bytes, 36),
        })
    }
}

/// The header of a frame or a seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHead {
    pub(crate) seal: bool,
    pub(crate) number: FrameNumber,
    /// Bytes of the body.
    pub(crate) length: u32,
    body_crc: u32,
}

impl FrameHead {
    /// Reads a header; `None` if there is none, or none that is whole.
    pub(crate) fn parse(salt: Salt, bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEADER_BYTES)?;
        if word(bytes, 0) != salt.0 || salt.checksum(&bytes[..28]) != word(bytes, 28) {
            return None;
        }
        Some(Self {
            seal: bytes[4] == KIND_SEAL,
            number: FrameNumber(long(bytes, 8)),
            length: word(bytes, 16),
            body_crc: word(bytes, 20),
        })
    }

    /// Bytes of header, body and padding.
    pub(crate) fn span(self) -> u64 {
        aligned(HEADER_BYTES as u64 + u64::from(self.length))
    }

    /// Whether this is the body that the header was written with.
    pub(crate) fn fits(self, salt: Salt, body: &[u8]) -> bool {
        body.len() == self.length as usize && salt.checksum(body) == self.body_crc
    }
}

/// Appends a frame whose body is the concatenation of `parts`, padded.
pub(crate) fn encode(out: &mut Vec<u8>, salt: Salt, number: FrameNumber, parts: [&[u8]; 2]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let crc = parts.iter().fold(salt.0, |crc, part| crc32c::crc32c_append(crc, part));
    let length = u32::try_from(length).expect("a group of entries is below 4 GiB");
    head(out, salt, KIND_FRAME, number, length, crc);
    parts.iter().for_each(|part| out.extend_from_slice(part));
    pad(out);
}

/// A seal, which says that every frame below `number` is durable.
pub(crate) fn seal(salt: Salt, number: FrameNumber) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    head(&mut out, salt, KIND_SEAL, number, 0, salt.checksum(&[]));
    pad(&mut out);
    out
}

fn head(out: &mut Vec<u8>, salt: Salt, kind: u8, number: FrameNumber, length: u32, body_crc: u32) {
    let start = out.len();
    out.extend_from_slice(&salt.0.to_le_bytes());
    out.extend_from_slice(&[kind, 0, 0, 0]);
    out.extend_from_slice(&number.0.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&body_crc.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    let crc = salt.checksum(&out[start..]);
    out.extend_from_slice(&crc.to_le_bytes());
}

fn pad(out: &mut Vec<u8>) {
    out.resize(usize::try_from(aligned(out.len() as u64)).expect("a buffer fits memory"), 0);
}

/// The next multiple of [`ALIGN`].
pub(crate) fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGN)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
