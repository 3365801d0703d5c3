//! All mutable chunks of a store. Everything here blocks: it is called where nothing else waits.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tripod_proto::code::Code;

use super::cells::Cells;
use super::directory::{Directory, DirectoryError};
use super::puts::{PutFile, Spoilt};
use super::records::{Counted, Records, Replayed};
use super::{ChunkId, Definition, MutableError, Stored};
use crate::layout::Chunk;
use crate::limits::MUTABLE_CHUNKS_MAX;

/// All mutable chunks of a store.
#[derive(Debug)]
pub struct Engine {
    pub(super) directory: Directory,
    quota_bytes: u64,
    held_bytes: AtomicU64,
    pub(super) chunks: Mutex<BTreeMap<ChunkId, Arc<Slot>>>,
    /// Chunks that were put as wholes.
    pub(super) puts: Mutex<BTreeMap<ChunkId, Arc<PutFile>>>,
    /// Those of them that were damaged when this was opened.
    pub(super) spoilt: Mutex<Vec<Spoilt>>,
    /// The directory may be another store's.
    pub(super) closed: AtomicBool,
}

/// The place of one chunk.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(super) state: Mutex<State>,
    /// Who writes, and sends it to the other owners: one call after the other.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
pub(super) enum State {
    Open(Box<Records>),
    Damaged(String),
    /// Its file was removed.
    Gone,
}

/// How far a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// How many batches there are.
    pub(crate) next: u64,
    /// How many of them all owners have: these are read.
    pub(crate) confirmed: u64,
    /// Nobody was answered about more than those.
    pub(crate) sure: bool,
}

/// What came of some batches of one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Put {
    pub accepted: u64,
    pub duplicates: u64,
}

impl From<Counted> for Put {
    fn from(counted: Counted) -> Self {
        Self { accepted: counted.accepted, duplicates: counted.duplicates }
    }
}

impl Engine {
    /// Opens the directory and reads all of it. A chunk that is damaged is told, and refuses; the others go on.
    ///
    /// # Errors
    /// [`DirectoryError`].
    pub fn open(path: &Path, quota_bytes: u64) -> Result<Self, DirectoryError> {
        let (directory, found) = Directory::open(path)?;
        let failed = |cause| DirectoryError::Unusable { path: path.to_owned(), cause };
        let mut chunks = BTreeMap::new();
        let mut held_bytes = 0;
        let put = super::puts::replayed(found.puts).map_err(failed)?;
        for file in found.records {
            let replayed = Records::replay(file.clone()).map_err(failed)?;
            let (id, state) = match replayed {
                // A second file of a chunk was begun when the first one could not be made durable: nobody was told of it.
                Replayed::Whole(records)
                    if records.cells.next() == 0 && chunks.contains_key(&records.cells.id) =>
                {
                    fs::remove_file(&file).map_err(failed)?;
                    continue;
                }
                Replayed::Whole(records) => {
                    held_bytes += records.cells.taken_bytes;
                    (records.cells.id.clone(), State::Open(records))
                }
                Replayed::Unbegun => {
                    fs::remove_file(&file).map_err(failed)?;
                    continue;
                }
                Replayed::Damaged { id, why } => {
                    let code = Code::RecordsDamaged;
                    tracing::error!(
                        code = code.number(),
                        why,
                        "{code}: records of a mutable chunk are damaged"
                    );
                    let Some(id) = id else { continue };
                    (id, State::Damaged(why))
                }
            };
            chunks
                .insert(id, Arc::new(Slot { state: Mutex::new(state), turn: tokio::sync::Mutex::default() }));
        }
        Ok(Self {
            directory,
            quota_bytes,
            held_bytes: AtomicU64::new(held_bytes + put.file_bytes),
            chunks: Mutex::new(chunks),
            puts: Mutex::new(put.puts),
            spoilt: Mutex::new(put.spoilt),
            closed: AtomicBool::new(false),
        })
    }

    /// Lets another store have the directory. Nothing is written after that.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        // Whoever writes just now has a lock; it is waited for.
        let slots: Vec<_> = self.chunks.lock().values().cloned().collect();
        for slot in slots {
            drop(slot.state.lock());
        }
        self.directory.unlock();
    }

    /// Bytes that batches take, in memory and about as many on disk, and those of files of chunks that were put or are being
    /// put, on disk.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// How many chunks there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.chunks.lock().len() + self.puts.lock().len() + self.spoilt.lock().len()
    }

    pub(crate) fn find(&self, id: &ChunkId) -> Option<Arc<Slot>> {
        self.chunks.lock().get(id).cloned()
    }

    /// The chunk in that epoch, which is begun if the scheduler has begun it.
    ///
    /// # Errors
    /// [`MutableError`]; [`MutableError::Epoch`] if a later one is known here.
    pub(crate) fn open_chunk(
        &self,
        id: &ChunkId,
        definition: &Definition,
        epoch: u64,
    ) -> Result<Arc<Slot>, MutableError> {
        self.check_open(id)?;
        // One chunk is begun at a time, so that none is begun twice.
        let mut chunks = self.chunks.lock();
        if let Some(slot) = chunks.get(id).cloned() {
            let mut state = slot.state.lock();
            let records = state.records(id)?;
            if records.cells.definition == *definition {
                let is = records.cells.epoch;
                if epoch < is {
                    return Err(MutableError::Epoch { key: id.key.clone(), asked: epoch, is });
                }
                if epoch > is {
                    drop(chunks);
                    records.begin_epoch(epoch)?;
                }
                drop(state);
                return Ok(slot);
            }
            if records.cells.definition.tileable >= definition.tileable {
                return Err(MutableError::Illegal(
                    "the chunk was another one under the same number".to_owned(),
                ));
            }
            // The name was used again.
            self.remove(id, &mut state)?;
            drop(state);
            chunks.remove(id);
        }
        if chunks.len() >= MUTABLE_CHUNKS_MAX {
            return Err(MutableError::Chunks(MUTABLE_CHUNKS_MAX));
        }
        let path = self.directory.fresh();
        let begun = Records::begin(path.clone(), Cells::new(id.clone(), definition.clone(), epoch));
        let begun = begun.and_then(|records| {
            let synced = self.directory.sync();
            synced.map_err(|error| MutableError::Disk { key: id.key.clone(), why: error.to_string() })?;
            Ok(records)
        });
        let records = begun.inspect_err(|_| {
            // Without it the next attempt begins another one.
            _ = fs::remove_file(&path);
        })?;
        let state = Mutex::new(State::Open(Box::new(records)));
        let slot = Arc::new(Slot { state, turn: tokio::sync::Mutex::default() });
        chunks.insert(id.clone(), Arc::clone(&slot));
        Ok(slot)
    }

    /// Writes batches of one chunk; all of them are durable when it returns. They are read when they are confirmed.
    ///
    /// # Errors
    /// [`MutableError`].
    pub(crate) fn put(
        &self,
        id: &ChunkId,
        slot: &Slot,
        epoch: u64,
        batches: Vec<Stored>,
    ) -> Result<Put, MutableError> {
        self.check_open(id)?;
        let mut state = slot.state.lock();
        let records = state.records(id)?;
        writable(&records.cells, epoch)?;
        Ok(self.write(records, batches)?.into())
    }

    /// Writes batches that the first owner gave their places. `first` is the place of the first one.
    ///
    /// # Errors
    /// [`MutableError`]; [`MutableError::Behind`] if what was before them is not here.
    pub(crate) fn put_copy(
        &self,
        id: &ChunkId,
        slot: &Slot,
        first: u64,
        batches: Vec<Stored>,
    ) -> Result<Put, MutableError> {
        self.check_open(id)?;
        let mut state = slot.state.lock();
        let records = state.records(id)?;
        let next = records.cells.next();
        if first > next {
            return Err(MutableError::Behind { next });
        }
        let mut fresh = Vec::new();
        let mut known = 0;
        for (seq, batch) in (first..).zip(batches) {
            if seq >= next {
                fresh.push(batch);
            } else if records.cells.is_at(seq, &batch) {
                known += 1;
            } else {
                return Err(MutableError::Diverged { key: id.key.clone(), seq });
            }
        }
        let accepted = fresh.len() as u64;
        let put = self.write(records, fresh)?;
        // The first owner knows what counts of it. If this one becomes it, it asks the others first.
        records.cells.sure = false;
        if put.accepted != accepted {
            return Err(MutableError::Diverged { key: id.key.clone(), seq: next });
        }
        Ok(Put { accepted, duplicates: known })
    }

    /// Nothing is written in this epoch any more, and it is read as of that time.
    ///
    /// # Errors
    /// [`MutableError`].
    pub(crate) fn seal(
        &self,
        id: &ChunkId,
        slot: &Slot,
        epoch: u64,
        timestamp_ns: Option<i64>,
    ) -> Result<(), MutableError> {
        self.check_open(id)?;
        let mut state = slot.state.lock();
        let records = state.records(id)?;
        if records.cells.epoch != epoch {
            let is = records.cells.epoch;
            return Err(MutableError::Epoch { key: id.key.clone(), asked: epoch, is });
        }
        records.seal(timestamp_ns)
    }

    /// All cells in C order as of a time; once the epoch is sealed, as of the time with which it was.
    ///
    /// # Errors
    /// [`MutableError`].
    pub(crate) fn read(
        &self,
        id: &ChunkId,
        slot: &Slot,
        timestamp_ns: Option<i64>,
    ) -> Result<Vec<u8>, MutableError> {
        let mut state = slot.state.lock();
        let cells = &state.records(id)?.cells;
        Ok(cells.as_of(effective(cells, timestamp_ns)))
    }

    /// The same of a frame.
    ///
    /// # Errors
    /// [`MutableError`].
    pub(crate) fn read_frame(
        &self,
        id: &ChunkId,
        slot: &Slot,
        timestamp_ns: Option<i64>,
    ) -> Result<Chunk, MutableError> {
        let mut state = slot.state.lock();
        let cells = &state.records(id)?.cells;
        cells.frame_as_of(effective(cells, timestamp_ns))
    }

    /// How far the chunk is.
    ///
    /// # Errors
    /// [`MutableError`].
    pub(crate) fn progress(&self, id: &ChunkId, slot: &Slot) -> Result<Progress, MutableError> {
        let mut state = slot.state.lock();
        let cells = &state.records(id)?.cells;
        Ok(Progress { next: cells.next(), confirmed: cells.confirmed, sure: cells.sure })
    }

    /// All owners have so many batches: they are read.
    ///
    /// # Errors
    /// [`MutableError`].
    pub(crate) fn confirm(&self, id: &ChunkId, slot: &Slot, count: u64) -> Result<(), MutableError> {
        let mut state = slot.state.lock();
        let cells = &mut state.records(id)?.cells;
        cells.confirmed = cells.confirmed.max(count.min(cells.next()));
        cells.sure = true;
        Ok(())
    }

    /// Batches from a place on, of about so many bytes, one at least if there is one.
    ///
    /// # Errors
    /// [`MutableError`].
    pub(crate) fn batches(
        &self,
        id: &ChunkId,
        slot: &Slot,
        first: u64,
        bytes: usize,
    ) -> Result<Vec<Stored>, MutableError> {
        let mut state = slot.state.lock();
        let cells = &state.records(id)?.cells;
        let (mut batches, mut taken) = (Vec::new(), 0);
        for seq in first..cells.next() {
            let Some(batch) = cells.batch(seq) else { break };
            taken += batch.taken_bytes();
            if !batches.is_empty() && taken > bytes as u64 {
                break;
            }
            batches.push(batch.clone());
        }
        Ok(batches)
    }

    /// Removes a chunk and its file; whether it was there.
    ///
    /// # Errors
    /// [`MutableError::Disk`].
    pub(crate) fn forget(&self, id: &ChunkId) -> Result<bool, MutableError> {
        self.check_open(id)?;
        let Some(slot) = self.chunks.lock().remove(id) else { return Ok(false) };
        self.remove(id, &mut slot.state.lock())?;
        Ok(true)
    }

    fn remove(&self, id: &ChunkId, state: &mut State) -> Result<(), MutableError> {
        self.remove_file(id, state)?;
        let synced = self.directory.sync();
        synced.map_err(|error| MutableError::Disk { key: id.key.clone(), why: error.to_string() })
    }

    pub(super) fn remove_file(&self, id: &ChunkId, state: &mut State) -> Result<(), MutableError> {
        if let State::Open(records) = state {
            removed(records.path(), id)?;
            self.release(records.cells.taken_bytes);
        }
        *state = State::Gone;
        Ok(())
    }

    pub(super) fn release(&self, bytes: u64) {
        self.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn write(&self, records: &mut Records, batches: Vec<Stored>) -> Result<Counted, MutableError> {
        let mut reserved = 0;
        let put = records.put(batches, |bytes| {
            self.reserve(bytes)?;
            reserved = bytes;
            Ok(())
        });
        if put.is_err() {
            self.held_bytes.fetch_sub(reserved, Ordering::Relaxed);
        }
        put
    }

    pub(super) fn reserve(&self, bytes: u64) -> Result<(), MutableError> {
        let fits = |held: u64| held.checked_add(bytes).filter(|then| *then <= self.quota_bytes);
        let reserved = self.held_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        let quota_bytes = self.quota_bytes;
        reserved.map(drop).map_err(|held_bytes| MutableError::Quota { bytes, held_bytes, quota_bytes })
    }

    /// Whether so many bytes would fit just now. Nothing is reserved.
    ///
    /// # Errors
    /// [`MutableError::Quota`].
    pub(super) fn check_room(&self, bytes: u64) -> Result<(), MutableError> {
        let (held_bytes, quota_bytes) = (self.held_bytes(), self.quota_bytes);
        if held_bytes.checked_add(bytes).is_some_and(|then| then <= quota_bytes) {
            return Ok(());
        }
        Err(MutableError::Quota { bytes, held_bytes, quota_bytes })
    }

    pub(super) fn check_open(&self, id: &ChunkId) -> Result<(), MutableError> {
        if !self.closed.load(Ordering::SeqCst) {
            return Ok(());
        }
        Err(MutableError::Disk { key: id.key.clone(), why: "the store ends".to_owned() })
    }
}

impl State {
    fn records(&mut self, id: &ChunkId) -> Result<&mut Records, MutableError> {
        let key = id.key.clone();
        match self {
            Self::Open(records) => Ok(records),
            Self::Damaged(why) => Err(MutableError::Damaged { key, why: why.clone() }),
            Self::Gone => Err(MutableError::Disk { key, why: "it was deleted meanwhile".to_owned() }),
        }
    }
}

/// Removes a file, which may be gone.
pub(super) fn removed(path: &Path, id: &ChunkId) -> Result<(), MutableError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(MutableError::Disk { key: id.key.clone(), why: error.to_string() })
        }
        _ => Ok(()),
    }
}

/// As of when a chunk is read that is asked for as of that time.
fn effective(cells: &Cells, timestamp_ns: Option<i64>) -> Option<i64> {
    match (cells.sealed, timestamp_ns) {
        // Earlier than that it is what it was.
        (Some(Some(sealed)), Some(asked)) => Some(sealed.min(asked)),
        (Some(sealed), asked) => sealed.or(asked),
        (None, asked) => asked,
    }
}

fn writable(cells: &Cells, epoch: u64) -> Result<(), MutableError> {
    let key = || cells.id.key.clone();
    if cells.epoch != epoch {
        return Err(MutableError::Epoch { key: key(), asked: epoch, is: cells.epoch });
    }
    if cells.sealed.is_some() {
        return Err(MutableError::Sealed { key: key(), epoch });
    }
    Ok(())
}
