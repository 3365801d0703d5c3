//! Chunks that were put as wholes: each is a file of frames with its bytes as they were sent, until it is sealed and becomes an
//! object. A file without its last frame was never answered, and goes. Blocks.
//!
//! ```text
//! frame 0: 'B' | message PutBegin      then: 'P' | bytes      last: 'E' | u64 bytes of all
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use prost::Message;
use tripod_proto::code::Code;

use super::engine::removed;
use super::frames::{self, scan};
use super::{ChunkId, Engine, MutableError};
use crate::limits::MUTABLE_CHUNKS_MAX;

const BEGIN: u8 = b'B';
const PIECE: u8 = b'P';
const END: u8 = b'E';

/// What a file is of.
#[derive(Clone, PartialEq, Message)]
struct PutBegin {
    #[prost(string, tag = "1")]
    session: String,
    #[prost(string, tag = "2")]
    key: String,
    #[prost(uint64, tag = "3")]
    tileable: u64,
    /// `mars.v1.Encoding`.
    #[prost(int32, tag = "4")]
    encoding: i32,
}

/// A chunk that was put, whole and durable.
#[derive(Debug)]
pub(crate) struct PutFile {
    id: ChunkId,
    tileable: u64,
    encoding: i32,
    path: PathBuf,
    bytes: u64,
}

/// One that is being put. Dropped before it is kept, it is gone.
#[derive(Debug)]
pub(crate) struct PutWriter {
    engine: Arc<Engine>,
    put: PutFile,
    file: File,
    end: u64,
    frames: u64,
    is_kept: bool,
}

impl PutFile {
    pub(super) fn id(&self) -> &ChunkId {
        &self.id
    }

    pub(super) fn tileable(&self) -> u64 {
        self.tileable
    }

    /// `mars.v1.Encoding` of its bytes.
    pub(crate) fn encoding(&self) -> i32 {
        self.encoding
    }

    /// All of its bytes, as they were sent.
    ///
    /// # Errors
    /// [`MutableError::Damaged`], [`MutableError::Disk`].
    pub(crate) fn image(&self) -> Result<Bytes, MutableError> {
        let key = || self.id.key.clone();
        let file = fs::read(&self.path);
        let file = file.map_err(|error| MutableError::Disk { key: key(), why: error.to_string() })?;
        let pieces = pieces(&file).map_err(|why| MutableError::Damaged { key: key(), why })?;
        let mut image = BytesMut::with_capacity(usize::try_from(self.bytes).unwrap_or(0));
        pieces.iter().for_each(|piece| image.extend_from_slice(piece));
        if image.len() as u64 == self.bytes {
            return Ok(image.freeze());
        }
        let why = format!("{} bytes are there, and {} were put", image.len(), self.bytes);
        Err(MutableError::Damaged { key: key(), why })
    }
}

impl PutWriter {
    fn begin(engine: Arc<Engine>, put: PutFile) -> Result<Self, MutableError> {
        let made = tripod_local::files::options().create_new(true).read(true).write(true).open(&put.path);
        let file = made.map_err(|error| disk(&put.id, &error))?;
        let begin = PutBegin {
            session: put.id.session.clone(),
            key: put.id.key.clone(),
            tileable: put.tileable,
            encoding: put.encoding,
        };
        let mut writer = Self { engine, put, file, end: 0, frames: 0, is_kept: false };
        writer.frame(BEGIN, &begin.encode_to_vec())?;
        Ok(writer)
    }

    /// How many bytes there are.
    pub(crate) fn bytes(&self) -> u64 {
        self.put.bytes
    }

    /// Adds the next bytes, for which there must be room.
    ///
    /// # Errors
    /// [`MutableError::Quota`], [`MutableError::Disk`].
    pub(crate) fn append(&mut self, piece: &[u8]) -> Result<(), MutableError> {
        self.engine.reserve(piece.len() as u64)?;
        self.put.bytes += piece.len() as u64;
        self.frame(PIECE, piece)
    }

    /// What was added so far, read from the file.
    ///
    /// # Errors
    /// As [`PutFile::image`].
    pub(crate) fn image(&mut self) -> Result<Bytes, MutableError> {
        let bytes = self.put.bytes;
        self.frame(END, &bytes.to_le_bytes())?;
        self.put.image()
    }

    fn frame(&mut self, kind: u8, content: &[u8]) -> Result<(), MutableError> {
        let content = [&[kind][..], content].concat();
        let frame = [&frames::head(self.frames, &content)[..], &content].concat();
        self.file.write_all_at(&frame, self.end).map_err(|error| disk(&self.put.id, &error))?;
        self.end += frame.len() as u64;
        self.frames += 1;
        Ok(())
    }
}

impl Drop for PutWriter {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        self.engine.release(self.put.bytes);
        if let Err(error) = removed(&self.put.path, &self.put.id) {
            tracing::warn!(%error, "what came of a chunk that was not put stays until the next start");
        }
    }
}

impl Engine {
    /// Begins to write a chunk that is put.
    ///
    /// # Errors
    /// [`MutableError`].
    pub(crate) fn begin_put(
        self: &Arc<Self>,
        id: &ChunkId,
        tileable: u64,
        encoding: i32,
    ) -> Result<PutWriter, MutableError> {
        self.check_open(id)?;
        if self.count() >= MUTABLE_CHUNKS_MAX {
            return Err(MutableError::Chunks(MUTABLE_CHUNKS_MAX));
        }
        let path = self.directory.fresh_put();
        let put = PutFile { id: id.clone(), tileable, encoding, path, bytes: 0 };
        PutWriter::begin(Arc::clone(self), put)
    }

    /// Makes a chunk durable of which all was written and looked at ([`PutWriter::image`]), in the place of one that was put
    /// before.
    ///
    /// # Errors
    /// [`MutableError::Disk`].
    pub(crate) fn keep_put(&self, mut writer: PutWriter) -> Result<(), MutableError> {
        let id = writer.put.id.clone();
        self.check_open(&id)?;
        let synced = writer.file.sync_all().and_then(|()| self.directory.sync());
        synced.map_err(|error| disk(&id, &error))?;
        writer.is_kept = true;
        let put = PutFile {
            id: id.clone(),
            tileable: writer.put.tileable,
            encoding: writer.put.encoding,
            path: writer.put.path.clone(),
            bytes: writer.put.bytes,
        };
        let before = self.puts.lock().insert(id.clone(), Arc::new(put));
        if let Some(before) = before {
            // If its file stays, the next start takes the later one.
            self.release(before.bytes);
            removed(&before.path, &id)?;
        }
        Ok(())
    }

    /// The chunk of that tileable that was put.
    pub(crate) fn find_put(&self, id: &ChunkId, tileable: u64) -> Option<Arc<PutFile>> {
        self.puts.lock().get(id).filter(|put| put.tileable == tileable).cloned()
    }

    pub(super) fn forget_put(&self, id: &ChunkId, tileable: u64) -> Result<bool, MutableError> {
        let Some(put) = self.find_put(id, tileable) else { return Ok(false) };
        removed(&put.path, id)?;
        let mut puts = self.puts.lock();
        if puts.get(id).is_some_and(|known| Arc::ptr_eq(known, &put)) {
            puts.remove(id);
            self.release(put.bytes);
        }
        Ok(true)
    }
}

/// The chunks of files that were put, and their bytes together. Files that are not whole are removed.
///
/// # Errors
/// What the system says.
pub(super) fn replayed(found: Vec<PathBuf>) -> io::Result<(BTreeMap<ChunkId, Arc<PutFile>>, u64)> {
    let (mut puts, mut held_bytes) = (BTreeMap::<ChunkId, Arc<PutFile>>::new(), 0);
    for path in found {
        match replay(&path)? {
            Ok(put) => {
                held_bytes += put.bytes;
                if let Some(before) = puts.insert(put.id.clone(), Arc::new(put)) {
                    held_bytes -= before.bytes;
                    fs::remove_file(&before.path)?;
                }
            }
            Err(Unwhole::Unfinished) => fs::remove_file(&path)?,
            Err(Unwhole::Damaged(why)) => {
                let code = Code::RecordsDamaged;
                let path = path.display();
                tracing::error!(code = code.number(), %path, why, "{code}: a chunk that was put is damaged");
            }
        }
    }
    Ok((puts, held_bytes))
}

/// Why a file has no chunk.
enum Unwhole {
    /// Nobody was answered about it.
    Unfinished,
    Damaged(String),
}

fn replay(path: &Path) -> io::Result<Result<PutFile, Unwhole>> {
    let file = fs::read(path)?;
    let scanned = match scan(&file) {
        Ok(scanned) => scanned,
        Err(damage) => return Ok(Err(Unwhole::Damaged(damage.why.to_owned()))),
    };
    let (Some([BEGIN, begin @ ..]), Some([END, ..])) = (scanned.contents.first(), scanned.contents.last())
    else {
        return Ok(Err(Unwhole::Unfinished));
    };
    let begin = match PutBegin::decode(begin) {
        Ok(begin) => begin,
        Err(error) => return Ok(Err(Unwhole::Damaged(error.to_string()))),
    };
    let pieces = match pieces(&file) {
        Ok(pieces) => pieces,
        Err(why) => return Ok(Err(Unwhole::Damaged(why))),
    };
    let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
    let PutBegin { session, key, tileable, encoding } = begin;
    Ok(Ok(PutFile { id: ChunkId { session, key }, tileable, encoding, path: path.to_owned(), bytes }))
}

/// The bytes of a whole file, in pieces.
fn pieces(file: &[u8]) -> Result<Vec<&[u8]>, String> {
    let scanned = scan(file).map_err(|damage| damage.why.to_owned())?;
    let [[BEGIN, ..], pieces @ .., [END, bytes @ ..]] = &scanned.contents[..] else {
        return Err("its first or its last frame is missing".to_owned());
    };
    let pieces: Option<Vec<&[u8]>> = pieces
        .iter()
        .map(|content| match content {
            [PIECE, piece @ ..] => Some(piece),
            _ => None,
        })
        .collect();
    let pieces = pieces.ok_or("a frame is none that can stand there")?;
    let all: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
    if bytes.first_chunk() == Some(&all.to_le_bytes()) {
        return Ok(pieces);
    }
    Err(format!("{all} bytes are there, and others were put"))
}

fn disk(id: &ChunkId, error: &io::Error) -> MutableError {
    MutableError::Disk { key: id.key.clone(), why: error.to_string() }
}
