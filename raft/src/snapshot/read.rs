//! Reading and checking a snapshot file.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use tripod_state::ids::FeatureLevel;
use tripod_state::snapshot::Record;
use tripod_state::{State, level};
use xxhash_rust::xxh3::Xxh3;

use super::stream::BlobStream;
use super::{
    BODY_BYTES_MAX, FRAME_BYTES, FRAME_HEADER, Header, KIND_HEADER, KIND_RECORDS, KIND_TRAILER, MAGIC,
    TRAILER_BYTES, frame_checksum, header,
};
use crate::base::codec;
use crate::disk::Blob;

/// Why a file is no snapshot.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotError {
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("it does not begin like a snapshot")]
    Magic,
    #[error("its layout has version {found}, this program knows versions up to {known}")]
    Version { found: u32, known: u32 },
    #[error("T4404 level-snapshot: it is of feature level {found}, this build supports {supported} at most")]
    Level { found: FeatureLevel, supported: FeatureLevel },
    #[error("frame {number}, which begins at byte {at_bytes}, is damaged: {problem}")]
    Frame { number: u64, at_bytes: u64, problem: String },
    #[error("its trailer, which begins at byte {at_bytes}, does not fit: {what}")]
    Trailer { at_bytes: u64, what: &'static str },
    #[error("its records are no state: {0}")]
    Records(String),
    #[error("its state has digest {found:016x}, the header says {expected:016x}")]
    Digest { expected: u64, found: u64 },
}

impl From<SnapshotError> for io::Error {
    fn from(error: SnapshotError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

/// Checks every frame, the trailer and the hash, and gives the header. Blocks.
pub(super) fn verify(file: Arc<dyn Blob>, level_max: FeatureLevel) -> Result<Header, SnapshotError> {
    let (mut frames, header) = open(file, level_max)?;
    while frames.next_records()?.is_some() {}
    Ok(header)
}

/// [`verify`], and builds the state; gives every record to `each`. Blocks.
pub(super) fn read(
    file: Arc<dyn Blob>,
    level_max: FeatureLevel,
    each: &mut dyn FnMut(&Record),
) -> Result<(Header, State), SnapshotError> {
    let (frames, header) = open(file, level_max)?;
    let mut records = Records { frames, body: Vec::new(), at: 0, ended: false, error: None };
    let built = State::from_records(records.by_ref().inspect(|record| each(record)));
    // A bad frame ends the records early; it, and not what the state makes of that, is the cause.
    if let Some(error) = records.error.take() {
        return Err(error);
    }
    let state = built.map_err(|error| SnapshotError::Records(error.to_string()))?;
    // The state may stop before the trailer was seen.
    if records.next().is_some() {
        return Err(SnapshotError::Records("records follow the last one".into()));
    }
    if let Some(error) = records.error.take() {
        return Err(error);
    }
    if state.level() != header.form.level {
        let text =
            format!("they are at feature level {}, the header at {}", state.level(), header.form.level);
        return Err(SnapshotError::Records(text));
    }
    // What another version hashed cannot be hashed again; the hash of the whole file was right.
    if header.form.digest_version == State::DIGEST_VERSION {
        let found = state.digest();
        if found != header.digest {
            return Err(SnapshotError::Digest { expected: header.digest, found });
        }
    }
    Ok((header, state))
}

fn open(file: Arc<dyn Blob>, level_max: FeatureLevel) -> Result<(Frames, Header), SnapshotError> {
    let remaining = file.size()?;
    let input = BufReader::with_capacity(FRAME_BYTES, BlobStream::new(file));
    let mut frames = Frames { input, remaining, hash: Xxh3::new(), bytes: 0, count: 0, began_at: 0 };
    if frames.take(MAGIC.len())? != MAGIC {
        return Err(SnapshotError::Magic);
    }
    let version = frames.take(4)?;
    let version = u32::from_le_bytes(version.try_into().expect("four bytes were taken"));
    let known = if level_max == level::FIRST { header::FIRST } else { header::WITH_LEVEL };
    if !(header::FIRST..=known).contains(&version) {
        return Err(SnapshotError::Version { found: version, known });
    }
    let (kind, body) = frames.next()?;
    if kind != KIND_HEADER {
        return Err(frames.damaged(0, format!("it has kind {kind} instead of the header's")));
    }
    let header = Header::decode(version, &body).map_err(|error| frames.damaged(0, error.to_string()))?;
    if header.form.level > level_max {
        return Err(SnapshotError::Level { found: header.form.level, supported: level_max });
    }
    Ok((frames, header))
}

/// Counts and hashes what passes.
struct Frames {
    input: BufReader<BlobStream>,
    /// Bytes of the file that are not read yet.
    remaining: u64,
    hash: Xxh3,
    bytes: u64,
    /// Frames read.
    count: u64,
    /// Where the frame begins that was read last, or is being read.
    began_at: u64,
}

impl Frames {
    fn damaged(&self, number: u64, problem: impl Into<String>) -> SnapshotError {
        SnapshotError::Frame { number, at_bytes: self.began_at, problem: problem.into() }
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>, SnapshotError> {
        if length as u64 > self.remaining {
            return Err(self.damaged(self.count, "the file ends inside it"));
        }
        let mut bytes = vec![0; length];
        self.input.read_exact(&mut bytes)?;
        self.remaining -= length as u64;
        self.hash.update(&bytes);
        self.bytes += length as u64;
        Ok(bytes)
    }

    fn next(&mut self) -> Result<(u8, Vec<u8>), SnapshotError> {
        self.began_at = self.bytes;
        let header = self.take(FRAME_HEADER)?;
        let kind = header[0];
        let length: [u8; 4] = header[1..5].try_into().expect("four of nine bytes");
        let stored = u32::from_le_bytes(header[5..].try_into().expect("the last four bytes"));
        let body_bytes = u32::from_le_bytes(length);
        if u64::from(body_bytes) > BODY_BYTES_MAX {
            return Err(self.damaged(self.count, format!("it claims {body_bytes} bytes")));
        }
        let body = self.take(body_bytes as usize)?;
        if frame_checksum(kind, length, &body) != stored {
            return Err(self.damaged(self.count, "its checksum is wrong"));
        }
        self.count += 1;
        Ok((kind, body))
    }

    /// The next body with records, or `None` after a valid trailer at the very end of the file.
    fn next_records(&mut self) -> Result<Option<Vec<u8>>, SnapshotError> {
        let before = [self.count, self.bytes, self.hash.digest()];
        let (kind, body) = self.next()?;
        match kind {
            KIND_RECORDS => Ok(Some(body)),
            KIND_TRAILER => self.check_trailer(before, &body).map(|()| None),
            other => Err(self.damaged(self.count - 1, format!("it has the unknown kind {other}"))),
        }
    }

    fn check_trailer(&self, expected: [u64; 3], body: &[u8]) -> Result<(), SnapshotError> {
        let found: Vec<u64> = body
            .chunks_exact(8)
            .map(|number| u64::from_le_bytes(number.try_into().expect("chunks of eight")))
            .collect();
        let refused = |what| Err(SnapshotError::Trailer { at_bytes: self.began_at, what });
        if found.len() != 3 || body.len() != TRAILER_BYTES {
            return refused("its size");
        }
        let what = ["the number of frames", "the length", "the hash"];
        for ((expected, found), what) in expected.iter().zip(found).zip(what) {
            if *expected != found {
                return refused(what);
            }
        }
        if self.remaining > 0 {
            return refused("bytes follow it");
        }
        Ok(())
    }
}

/// The records of all frames. Ends at the trailer, or at the first error, which it keeps.
struct Records {
    frames: Frames,
    body: Vec<u8>,
    at: usize,
    /// A valid trailer was seen.
    ended: bool,
    error: Option<SnapshotError>,
}

impl Records {
    fn try_next(&mut self) -> Result<Option<Record>, SnapshotError> {
        while self.at == self.body.len() {
            match self.frames.next_records()? {
                Some(body) => (self.body, self.at) = (body, 0),
                None => {
                    self.ended = true;
                    return Ok(None);
                }
            }
        }
        let bad = |problem: String| self.frames.damaged(self.frames.count - 1, problem);
        let rest = &self.body[self.at..];
        let (length, rest) = rest.split_at_checked(4).ok_or_else(|| bad("a record has no length".into()))?;
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        let record = rest.get(..length).ok_or_else(|| bad("a record is cut".into()))?;
        let record = codec::decode(record).map_err(|error| bad(error.to_string()))?;
        self.at += 4 + length;
        Ok(Some(record))
    }
}

impl Iterator for Records {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if self.ended || self.error.is_some() {
            return None;
        }
        self.try_next().unwrap_or_else(|error| {
            self.error = Some(error);
            None
        })
    }
}
