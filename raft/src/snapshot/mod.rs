//! Snapshots are files. This is their layout:
//!
//! ```text
//! magic (8 bytes), version u32 LE
//! frame*: kind u8, length u32 LE, crc32c u32 LE of (kind, length, body), body
//!   header frame   an encoded Header; what is in it tells the version
//!   record frames  records, each: length u32 LE, encoded record; about 1 MiB a frame
//!   trailer frame  number of frames before it, bytes before it, xxh3 of those bytes; u64 LE each
//! ```
//!
//! A file without a valid trailer is no snapshot. [`write`] makes them, [`read`] checks and reads
//! them, both along a [`stream`]; [`store`] names, keeps and drops them; [`incoming`] is the place of the one
//! that comes from the leader, as far as it came: a [`part`].

#[cfg(test)]
mod compat;
mod frozen;
mod header;
mod incoming;
mod part;
mod read;
mod store;
mod stream;
mod tally;
mod write;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use tripod_state::ids::FeatureLevel;
use tripod_state::snapshot::Record;
use tripod_state::{State, level};

use crate::base::types::Types;
use crate::disk::{Blob, Files};

pub(crate) use frozen::Frozen;
pub(crate) use header::{Form, Header};
pub(crate) use incoming::{FileId, Turn};
pub(crate) use part::Part;
pub(crate) use read::SnapshotError;
pub(crate) use store::SnapshotStore;
pub use tally::SnapshotCounts;
pub(crate) use tally::SnapshotTally;

/// Begins every snapshot file.
const MAGIC: &[u8; 8] = b"TRIPODSN";
/// Bytes of a record frame after which the next one begins. One record may be larger.
const FRAME_BYTES: usize = 1 << 20;
/// Largest body of a frame that a reader accepts: twice a record with the largest value.
const BODY_BYTES_MAX: u64 = 128 << 20;
/// Kind, length and checksum.
const FRAME_HEADER: usize = 9;

/// Three numbers.
const TRAILER_BYTES: usize = 24;

const KIND_HEADER: u8 = 1;
const KIND_RECORDS: u8 = 2;
const KIND_TRAILER: u8 = 3;

/// Writes a snapshot to whatever takes bytes, and gives that back. Blocks.
pub(crate) fn write_to<W: Write>(out: W, header: &Header, state: &State) -> io::Result<W> {
    write::write_frames(out, header, state)
}

/// [`write_to`] with these bodies of records in the place of a state's.
pub(crate) fn write_bodies<W: Write>(out: W, header: &Header, bodies: &[&[u8]]) -> io::Result<W> {
    write::write_bodies(out, header, bodies)
}

/// Checks a whole file and builds its state; gives every record to `each`. Blocks.
pub(crate) fn examine(
    file: Arc<dyn Blob>,
    each: &mut dyn FnMut(&Record),
) -> Result<(Header, State), SnapshotError> {
    read::read(file, level::NEWEST, each)
}

/// A snapshot as the engine is given it.
pub(crate) type Snapshot = openraft::alias::SnapshotOf<Types, SnapshotFile>;

/// A snapshot on disk, and the directory that it is in.
#[derive(Clone)]
pub(crate) struct SnapshotFile {
    files: Arc<dyn Files>,
    name: String,
    /// The highest feature level that this build reads.
    level_max: FeatureLevel,
}

impl SnapshotFile {
    /// Its bytes. Blocks.
    pub(crate) fn open(&self) -> io::Result<Arc<dyn Blob>> {
        self.files.open(&self.name)
    }

    /// Its last frame, unread: with the length it tells this file from every other. Blocks.
    pub(crate) fn seal(&self) -> io::Result<Bytes> {
        let blob = self.open()?;
        let mut seal = vec![0; FRAME_HEADER + TRAILER_BYTES];
        let read = blob.read_at(blob.size()?.saturating_sub(seal.len() as u64), &mut seal)?;
        seal.truncate(read);
        Ok(seal.into())
    }

    /// Checks every frame, the trailer and the hash, and gives the header. Blocks.
    pub(crate) fn verify(&self) -> Result<Header, SnapshotError> {
        read::verify(self.open()?, self.level_max)
    }

    /// [`Self::verify`], and builds the state. Blocks.
    pub(crate) fn read(&self) -> Result<(Header, State), SnapshotError> {
        read::read(self.open()?, self.level_max, &mut |_| {})
    }

    /// Drops the file; one that is not there is no error. Blocks.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match self.files.remove(&self.name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// Its path.
impl fmt::Display for SnapshotFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.files.place(), self.name)
    }
}

impl fmt::Debug for SnapshotFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The checksum of a frame.
fn frame_checksum(kind: u8, length: [u8; 4], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(&[kind]), &length), body)
}
