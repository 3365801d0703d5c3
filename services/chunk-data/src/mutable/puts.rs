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
use super::{ChunkId, Engine, Held, MutableError};
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
    /// With all that stands around them: what it takes of the bound on all mutable chunks.
    file_bytes: u64,
}

/// A file of a chunk that was put, and that is not what was written. It stays for as long as somebody may want to put another
/// copy in its place, which is until its tileable is sealed or deleted, or the chunk is put again.
#[derive(Debug)]
pub(super) struct Spoilt {
    id: ChunkId,
    tileable: u64,
    path: PathBuf,
    file_bytes: u64,
}

/// One that is being put. Dropped before it is kept, it is gone.
#[derive(Debug)]
pub(crate) struct PutWriter {
    engine: Arc<Engine>,
    put: PutFile,
    file: File,
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
        let mut writer = Self { engine, put, file, frames: 0, is_kept: false };
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
        self.frame(PIECE, piece)?;
        self.put.bytes += piece.len() as u64;
        Ok(())
    }

    /// What was added so far, read from the file.
    ///
    /// # Errors
    /// As [`PutFile::image`], and [`MutableError::Quota`].
    pub(crate) fn image(&mut self) -> Result<Bytes, MutableError> {
        let bytes = self.put.bytes;
        self.frame(END, &bytes.to_le_bytes())?;
        self.put.image()
    }

    /// Writes a frame. There is room for all of it, its head too: who sends a byte in each message fills the disk otherwise.
    fn frame(&mut self, kind: u8, content: &[u8]) -> Result<(), MutableError> {
        let content = [&[kind][..], content].concat();
        let frame = [&frames::head(self.frames, &content)[..], &content].concat();
        let at = self.put.file_bytes;
        self.engine.reserve(frame.len() as u64)?;
        self.put.file_bytes += frame.len() as u64;
        self.file.write_all_at(&frame, at).map_err(|error| disk(&self.put.id, &error))?;
        self.frames += 1;
        Ok(())
    }
}

impl Drop for PutWriter {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        match removed(&self.put.path, &self.put.id) {
            Ok(()) => self.engine.release(self.put.file_bytes),
            // It takes its room for so long.
            Err(error) => {
                tracing::warn!(%error, "what came of a chunk that was not put stays until the next start");
            }
        }
    }
}

impl Engine {
    /// Begins to write a chunk that is put, of so many bytes at least: without room for them nothing is written.
    ///
    /// # Errors
    /// [`MutableError`].
    pub(crate) fn begin_put(
        self: &Arc<Self>,
        id: &ChunkId,
        tileable: u64,
        encoding: i32,
        bytes_min: u64,
    ) -> Result<PutWriter, MutableError> {
        self.check_open(id)?;
        self.check_room(bytes_min)?;
        if self.count() >= MUTABLE_CHUNKS_MAX {
            return Err(MutableError::Chunks(MUTABLE_CHUNKS_MAX));
        }
        let path = self.directory.fresh_put();
        let put = PutFile { id: id.clone(), tileable, encoding, path, bytes: 0, file_bytes: 0 };
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
            file_bytes: writer.put.file_bytes,
        };
        let before = self.puts.lock().insert(id.clone(), Arc::new(put));
        if let Some(before) = before {
            match removed(&before.path, &id) {
                Ok(()) => self.release(before.file_bytes),
                // It takes its room until the next start, which takes the later one.
                Err(error) => {
                    tracing::warn!(%error, "a chunk that was put before stays until the next start");
                }
            }
        }
        self.forget_spoilt(&id, None)?;
        Ok(())
    }

    /// The chunk of that tileable that was put.
    pub(crate) fn find_put(&self, id: &ChunkId, tileable: u64) -> Option<Arc<PutFile>> {
        self.puts.lock().get(id).filter(|put| put.tileable == tileable).cloned()
    }

    pub(super) fn forget_put(&self, id: &ChunkId, tileable: u64) -> Result<bool, MutableError> {
        let was_spoilt = self.forget_spoilt(id, Some(tileable))?;
        let Some(put) = self.find_put(id, tileable) else { return Ok(was_spoilt) };
        removed(&put.path, id)?;
        let mut puts = self.puts.lock();
        if puts.get(id).is_some_and(|known| Arc::ptr_eq(known, &put)) {
            puts.remove(id);
            self.release(put.file_bytes);
        }
        Ok(true)
    }

    /// Damaged files of a chunk that was put, as [`Held`].
    pub(super) fn held_spoilt(&self) -> Vec<Held> {
        let spoilt = self.spoilt.lock();
        let held = |spoilt: &Spoilt| Held { id: spoilt.id.clone(), tileable: spoilt.tileable, is_put: true };
        spoilt.iter().map(held).collect()
    }

    /// Removes damaged files of a chunk: of that tileable, or of any. Whether there were some.
    fn forget_spoilt(&self, id: &ChunkId, tileable: Option<u64>) -> Result<bool, MutableError> {
        let mut all = self.spoilt.lock();
        let is_of = |spoilt: &mut Spoilt| {
            spoilt.id == *id && tileable.is_none_or(|tileable| spoilt.tileable == tileable)
        };
        let (mut any, mut failed) = (false, None);
        for spoilt in all.extract_if(.., is_of).collect::<Vec<_>>() {
            if let Err(error) = removed(&spoilt.path, id) {
                failed = Some(error);
                all.push(spoilt);
                continue;
            }
            any = true;
            self.release(spoilt.file_bytes);
            let (code, path) = (Code::RecordsDamaged, spoilt.path.display());
            tracing::info!(code = code.number(), %path, "{code}: a damaged chunk that nobody needs is removed");
        }
        failed.map_or(Ok(any), Err)
    }
}

/// What there is of files that were put.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) puts: BTreeMap<ChunkId, Arc<PutFile>>,
    pub(super) spoilt: Vec<Spoilt>,
    /// What all of them take.
    pub(super) file_bytes: u64,
}

/// The chunks of files that were put. Files that are not whole are removed, and damaged ones that nobody can be asked about.
///
/// # Errors
/// What the system says.
pub(super) fn replayed(paths: Vec<PathBuf>) -> io::Result<Found> {
    let mut found = Found::default();
    for path in paths {
        match replay(&path)? {
            Replayed::Whole(put) => {
                found.file_bytes += put.file_bytes;
                if let Some(before) = found.puts.insert(put.id.clone(), Arc::new(put)) {
                    found.file_bytes -= before.file_bytes;
                    fs::remove_file(&before.path)?;
                }
            }
            Replayed::Unfinished => fs::remove_file(&path)?,
            Replayed::Damaged { begin, why, file_bytes } => {
                let (code, name) = (Code::RecordsDamaged, path.display());
                tracing::error!(code = code.number(), path = %name, why, "{code}: a chunk that was put is damaged");
                let Some(PutBegin { session, key, tileable, .. }) = begin else {
                    // Whose it is nobody can tell, so nobody would ever say that it is not needed.
                    tracing::warn!(path = %name, "it is removed, as it does not say of which chunk it is");
                    fs::remove_file(&path)?;
                    continue;
                };
                found.file_bytes += file_bytes;
                found.spoilt.push(Spoilt { id: ChunkId { session, key }, tileable, path, file_bytes });
            }
        }
    }
    Ok(found)
}

/// What a file comes to.
enum Replayed {
    Whole(PutFile),
    /// Nobody was answered about it.
    Unfinished,
    /// Of which chunk, if that can still be read.
    Damaged {
        begin: Option<PutBegin>,
        why: String,
        file_bytes: u64,
    },
}

fn replay(path: &Path) -> io::Result<Replayed> {
    let file = fs::read(path)?;
    let file_bytes = file.len() as u64;
    let begin_of = |first: Option<&&[u8]>| match first {
        Some([BEGIN, begin @ ..]) => PutBegin::decode(begin).ok(),
        _ => None,
    };
    let scanned = match scan(&file) {
        Ok(scanned) => scanned,
        Err(damage) => {
            let before = file.get(..damage.at).and_then(|before| scan(before).ok());
            let begin = before.and_then(|before| begin_of(before.contents.first()));
            let why = format!("{} (byte {})", damage.why, damage.at);
            return Ok(Replayed::Damaged { begin, why, file_bytes });
        }
    };
    let (Some([BEGIN, ..]), Some([END, ..])) = (scanned.contents.first(), scanned.contents.last()) else {
        return Ok(Replayed::Unfinished);
    };
    let Some(begin) = begin_of(scanned.contents.first()) else {
        let why = "its first frame says nothing of a chunk".to_owned();
        return Ok(Replayed::Damaged { begin: None, why, file_bytes });
    };
    let bytes = match pieces(&file) {
        Ok(pieces) => pieces.iter().map(|piece| piece.len() as u64).sum(),
        Err(why) => return Ok(Replayed::Damaged { begin: Some(begin), why, file_bytes }),
    };
    let PutBegin { session, key, tileable, encoding } = begin;
    let id = ChunkId { session, key };
    Ok(Replayed::Whole(PutFile { id, tileable, encoding, path: path.to_owned(), bytes, file_bytes }))
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
