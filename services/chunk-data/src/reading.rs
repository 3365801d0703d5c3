//! `GetChunksData` and `GetMutableChunksData`: one key after the other.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Status};
use tripod_proto::mars::v1::{ChunkData, Compression, Index, MutableInfo, MutableState};

use crate::answer::Answer;
use crate::compression;
use crate::copying;
use crate::layout::Chunk;
use crate::limits::PREPARE_PATIENCE;
use crate::look_up::{Known, Told};
use crate::mutable::{ChunkId, Definition, MutableError};
use crate::request::Wanted;
use crate::service::Inner;
use crate::status::{Trouble, panicked};
use crate::store::{ObjectError, Whereabouts};
use crate::stream::{Unread, Writer};

/// As of when mutable chunks are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AsOf {
    pub(crate) epoch: u64,
    pub(crate) timestamp_ns: Option<i64>,
    /// The epoch ends with it.
    pub(crate) seal: bool,
    /// The scheduler chose this owner. All of them have what was answered.
    pub(crate) any_owner: bool,
}

/// All cells of a mutable chunk.
pub(crate) struct Cells {
    pub(crate) definition: Definition,
    pub(crate) content: Content,
    /// So many are in memory at a time.
    pub(crate) permit: OwnedSemaphorePermit,
}

/// What cells are.
pub(crate) enum Content {
    /// Elements in C order.
    Tensor(Vec<u8>),
    Frame(Chunk),
}

/// An answer, and what keeps its bytes.
struct Prepared {
    answer: Answer,
    keep: Box<dyn Any + Send + Sync>,
}

/// Sends what is wanted of chunks that are objects.
pub(crate) async fn chunks(inner: Arc<Inner>, wanted: Wanted, told: Vec<Told>, writer: Writer) {
    let deadline = Instant::now() + PREPARE_PATIENCE;
    for (place, told) in told.into_iter().enumerate() {
        let key = &wanted.keys[place];
        let prepared = prepare(&inner, &wanted.session, key, told, wanted.index(place), deadline).await;
        if send(&writer, &wanted, key, prepared).await.is_err() {
            return;
        }
    }
}

/// Sends what is wanted of mutable chunks.
pub(crate) async fn mutable_chunks(inner: Arc<Inner>, wanted: Wanted, as_of: AsOf, writer: Writer) {
    for (place, key) in wanted.keys.iter().enumerate() {
        let id = ChunkId { session: wanted.session.clone(), key: key.clone() };
        let prepared = match cells(&inner, id, as_of).await {
            Ok(cells) => part(cells, wanted.index(place)),
            Err(trouble) => Err(trouble),
        };
        if send(&writer, &wanted, key, prepared).await.is_err() {
            return;
        }
    }
}

async fn prepare(
    inner: &Inner,
    session: &str,
    key: &str,
    told: Told,
    index: Option<&Index>,
    deadline: Instant,
) -> Result<Prepared, Trouble> {
    let object = match fetch(inner, key, told, deadline).await {
        // What was remembered may be so no more: the chunk was made again, or moved.
        Err(trouble) if trouble.code == Code::NotFound => {
            inner.look_ups.forget(session, key);
            let keys = [key.to_owned()];
            let told = inner.look_ups.chunks(session, &keys).await?.pop().unwrap_or(Told::Unknown);
            fetch(inner, key, told, deadline).await?
        }
        fetched => fetched?,
    };
    let (key, index) = (key.to_owned(), index.cloned());
    let prepared = spawn_blocking(move || {
        let chunk = Chunk::read(&object.bytes, object.metadata_offset)?;
        if !chunk.is_whole() {
            return Err(Trouble::new(Code::DataLoss, format!("the bytes of chunk {key} are damaged")));
        }
        Ok(Prepared { answer: Answer::of(chunk, index.as_ref())?, keep: object.keep })
    });
    prepared.await.map_err(|error| panicked(&error))?
}

async fn fetch(
    inner: &Inner,
    key: &str,
    told: Told,
    deadline: Instant,
) -> Result<crate::store::Object, Trouble> {
    let not_found = |text: String| Err(Trouble::new(Code::NotFound, text));
    let Known { object, workers } = match told {
        Told::Known(known) => known,
        Told::NoObject => return not_found(format!("chunk {key} is not made yet, or gone")),
        Told::Unknown => return not_found(format!("the session has no chunk {key}")),
    };
    let here = inner.store.address();
    if inner.store.whereabouts(object) == Whereabouts::Absent && !workers.iter().any(|worker| worker == here)
    {
        let at = if workers.is_empty() { "nowhere".to_owned() } else { workers.join(", ") };
        return not_found(format!("chunk {key} is not at worker {here}; it is at: {at}"));
    }
    match timeout_at(deadline, inner.store.object(object)).await {
        Ok(Ok(object)) => Ok(object),
        Ok(Err(ObjectError::Gone(why))) => not_found(format!("chunk {key}: {why}")),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => {
            let waited_s = PREPARE_PATIENCE.as_secs();
            Err(Trouble::new(Code::Unavailable, format!("chunk {key} did not come within {waited_s} s")))
        }
    }
}

/// All cells of a mutable chunk.
///
/// # Errors
/// [`Trouble`].
pub(crate) async fn cells(inner: &Arc<Inner>, id: ChunkId, as_of: AsOf) -> Result<Cells, Trouble> {
    inner.engine()?;
    let info = current(inner, &id, as_of.epoch, as_of.seal).await?;
    cells_of(inner, id, &info, as_of).await
}

/// The same of a tileable as it was described a moment ago.
///
/// # Errors
/// [`Trouble`].
pub(crate) async fn cells_of(
    inner: &Arc<Inner>,
    id: ChunkId,
    info: &MutableInfo,
    as_of: AsOf,
) -> Result<Cells, Trouble> {
    let engine = Arc::clone(inner.engine()?);
    let AsOf { epoch, timestamp_ns, seal, any_owner } = as_of;
    readable(info, &id, seal)?;
    let definition = Definition::of(info, &id.key)?;
    let here = inner.store.address();
    if !any_owner || !owners(info, &id).iter().any(|owner| owner == here) {
        check_first(info, &id, here)?;
    }
    let permit = Arc::clone(&inner.materialised).acquire_owned().await;
    let permit = permit.map_err(|_| Trouble::new(Code::Unavailable, "the store ends"))?;
    let (opening, opened, described) = (Arc::clone(&engine), id.clone(), definition.clone());
    let slot = spawn_blocking(move || match opening.find(&opened) {
        // What is sealed takes nothing, also if nothing was written to it.
        None if !seal => Ok(None),
        _ => opening.open_chunk(&opened, &described, epoch).map(Some),
    });
    let slot = slot.await.map_err(|error| panicked(&error))??;
    if slot.is_none() && info.state() == MutableState::Sealed {
        let text = format!(
            "chunk {} is sealed, and its records are gone; next: read the tileable that it is",
            id.key
        );
        return Err(Trouble::new(Code::FailedPrecondition, text));
    }
    let seal_timestamp_ns = info.seal_timestamp_ns;
    if let Some(slot) = &slot {
        let turn = slot.turn.lock().await;
        if seal {
            // All that was answered is here; what was not may count as well.
            let (engine, id, slot) = (Arc::clone(&engine), id.clone(), Arc::clone(slot));
            let sealed = spawn_blocking(move || {
                engine.seal(&id, &slot, epoch, seal_timestamp_ns)?;
                engine.confirm(&id, &slot, u64::MAX)
            });
            sealed.await.map_err(|error| panicked(&error))??;
        } else {
            copying::settle(inner, &id, slot, info).await?;
        }
        drop(turn);
    }
    let read = spawn_blocking(move || {
        let content = match (&slot, definition.is_frame()) {
            (Some(slot), false) => Content::Tensor(engine.read(&id, slot, timestamp_ns)?),
            (None, false) => Content::Tensor(definition.defaults()),
            (Some(slot), true) => Content::Frame(engine.read_frame(&id, slot, timestamp_ns)?),
            (None, true) => Content::Frame(definition.default_frame()),
        };
        Ok(Cells { definition, content, permit })
    });
    read.await.map_err(|error| panicked(&error))?
}

fn part(cells: Cells, index: Option<&Index>) -> Result<Prepared, Trouble> {
    let Cells { definition, content, permit } = cells;
    let answer = match content {
        Content::Tensor(values) => {
            Answer::tensor(definition.element, &definition.shape, values.into(), index)?
        }
        Content::Frame(chunk) => Answer::of(chunk, index)?,
    };
    Ok(Prepared { answer, keep: Box::new(permit) })
}

/// The tileable of a chunk in that epoch.
///
/// # Errors
/// `ABORTED` if it has another one, or what the scheduler says.
pub(crate) async fn current(
    inner: &Inner,
    id: &ChunkId,
    epoch: u64,
    now: bool,
) -> Result<Arc<MutableInfo>, Trouble> {
    let mut info = if now { inner.look_ups.mutable_now(id).await } else { inner.look_ups.mutable(id).await }?;
    if info.epoch != epoch && !now {
        info = inner.look_ups.mutable_now(id).await?;
    }
    if info.epoch == epoch {
        return Ok(info);
    }
    Err(MutableError::Epoch { key: id.key.clone(), asked: epoch, is: info.epoch }.into())
}

pub(crate) fn readable(info: &MutableInfo, id: &ChunkId, seal: bool) -> Result<(), Trouble> {
    let state = info.state();
    if seal && state != MutableState::Sealing {
        let text = format!("chunk {}: the scheduler does not seal epoch {}", id.key, info.epoch);
        return Err(Trouble::new(Code::Aborted, text));
    }
    match state {
        MutableState::Lost => Err(Trouble::new(Code::DataLoss, format!("chunk {} was lost", id.key))),
        MutableState::Deleted => Err(Trouble::new(Code::NotFound, format!("chunk {} was deleted", id.key))),
        _ => Ok(()),
    }
}

/// # Errors
/// `FAILED_PRECONDITION` unless this is the first owner: the others have what may not count.
pub(crate) fn check_first(info: &MutableInfo, id: &ChunkId, here: &str) -> Result<(), Trouble> {
    let owners = owners(info, id);
    if owners.first().is_some_and(|first| first == here) {
        return Ok(());
    }
    let first = owners.first().map_or("nobody", String::as_str);
    let text = format!("mutable chunk {} is read and written at worker {first}, and this is {here}", id.key);
    Err(Trouble::new(Code::FailedPrecondition, text))
}

pub(crate) fn owners<'a>(info: &'a MutableInfo, id: &ChunkId) -> &'a [String] {
    info.chunks.iter().find(|chunk| chunk.key == id.key).map_or(&[], |chunk| &chunk.workers)
}

/// Sends one key's answer, or what is wrong with it.
async fn send(
    writer: &Writer,
    wanted: &Wanted,
    key: &str,
    prepared: Result<Prepared, Trouble>,
) -> Result<(), Unread> {
    let message =
        ChunkData { session_id: wanted.session.clone(), chunk_key: key.to_owned(), ..ChunkData::default() };
    let Prepared { mut answer, keep } = match prepared {
        Ok(prepared) => prepared,
        Err(trouble) => {
            return writer.write(ChunkData { last: true, error: Some(trouble.message()), ..message }).await;
        }
    };
    let message = ChunkData {
        compression: wanted.compression.into(),
        encoding: answer.encoding.into(),
        shape: answer.shape.clone(),
        dtype: answer.element.into(),
        ..message
    };
    let mut seq = 0;
    loop {
        let how = wanted.compression;
        let (rest, piece) = match spawn_blocking(move || next(answer, how)).await {
            Ok(Ok(next)) => next,
            Ok(Err(error)) => {
                writer.end(Status::internal(format!("a chunk could not be compressed: {error}")));
                return Err(Unread);
            }
            Err(error) => {
                writer.end(panicked(&error));
                return Err(Unread);
            }
        };
        answer = rest;
        let last = answer.is_done();
        let crc32c = crc32c::crc32c(&piece);
        writer.write(ChunkData { seq, bytes: piece, last, crc32c, ..message.clone() }).await?;
        if last {
            drop(keep);
            return Ok(());
        }
        seq += 1;
    }
}

fn next(mut answer: Answer, how: Compression) -> std::io::Result<(Answer, Bytes)> {
    let piece = answer.next().unwrap_or_default();
    Ok((answer, compression::compress(piece, how)?))
}
