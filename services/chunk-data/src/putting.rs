//! `PutChunksData`: whole chunks, one after the other, each kept in a file until its tileable is sealed.

use std::sync::Arc;

use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Code, Status};
use tripod_proto::mars::v1::{ChunkData, Compression, MutableInfo, MutableState};

use crate::compression;
use crate::limits::{PUT_CHUNK_BYTES_MAX, PUT_CHUNKS_MAX, PUT_PART_BYTES_MAX, PUT_PARTS_MAX, WRITE_PATIENCE};
use crate::mutable::{ChunkId, MutableError, PutWriter, is_for_puts};
use crate::put_chunk::PutChunk;
use crate::reading::owners;
use crate::request::check_keys;
use crate::service::Inner;
use crate::status::{Trouble, panicked};

/// Keeps all chunks of a call; those before an error stay. Answers with their keys.
///
/// # Errors
/// The status of the first chunk that is refused.
pub(crate) async fn put(
    inner: &Arc<Inner>,
    mut messages: impl Stream<Item = Result<ChunkData, Status>> + Unpin,
) -> Result<Vec<String>, Status> {
    let mut stored = Vec::new();
    while let Some(first) = next(&mut messages).await? {
        if stored.len() >= PUT_CHUNKS_MAX {
            let text =
                format!("a call puts {PUT_CHUNKS_MAX} chunks at most; next: put the others with another one");
            return Err(Status::invalid_argument(text));
        }
        stored.push(one(inner, first, &mut messages).await?);
    }
    Ok(stored)
}

/// The next message, if there is one.
async fn next(
    messages: &mut (impl Stream<Item = Result<ChunkData, Status>> + Unpin),
) -> Result<Option<ChunkData>, Status> {
    match timeout(WRITE_PATIENCE, messages.next()).await {
        Ok(next) => next.transpose(),
        Err(_) => {
            let waited_s = WRITE_PATIENCE.as_secs();
            Err(Status::deadline_exceeded(format!(
                "nothing came for {waited_s} s; the chunk that was begun is gone"
            )))
        }
    }
}

async fn one(
    inner: &Arc<Inner>,
    first: ChunkData,
    messages: &mut (impl Stream<Item = Result<ChunkData, Status>> + Unpin),
) -> Result<String, Status> {
    let engine = Arc::clone(inner.engine()?);
    check_keys(&first.session_id, std::slice::from_ref(&first.chunk_key))?;
    let id = ChunkId { session: first.session_id.clone(), key: first.chunk_key.clone() };
    let encoding = first.encoding;
    let info = wanted(inner, &id).await?;
    let expected = PutChunk::of(&info, &id.key)?;
    let (beginning, of, tileable, bytes_min) =
        (Arc::clone(&engine), id.clone(), info.id, expected.bytes_min());
    let begun = spawn_blocking(move || beginning.begin_put(&of, tileable, encoding, bytes_min)).await;
    let mut writer = begun.map_err(|error| panicked(&error))?.map_err(Trouble::from)?;
    let mut message = first;
    for seq in 0.. {
        check(&message, &id, encoding, seq)?;
        let is_last = message.last;
        let appended = spawn_blocking(move || append(writer, message)).await;
        writer = appended.map_err(|error| panicked(&error))??;
        if is_last {
            break;
        }
        message = next(messages).await?.ok_or_else(|| {
            Status::invalid_argument(format!("chunk {}: the call ended before its last message", id.key))
        })?;
    }
    let permit = Arc::clone(&inner.materialised).acquire_owned().await;
    let permit = permit.map_err(|_| Status::unavailable("the store ends"))?;
    let looked_at = spawn_blocking(move || {
        let image = writer.image()?;
        expected.read(encoding, &image)?;
        Ok::<_, Trouble>(writer)
    });
    let writer = looked_at.await.map_err(|error| panicked(&error))??;
    drop(permit);
    // It may have been sealed while the chunk came.
    if wanted(inner, &id).await?.id != tileable {
        return Err(Status::aborted(format!("chunk {} is another one by now", id.key)));
    }
    let kept = spawn_blocking(move || engine.keep_put(writer)).await;
    kept.map_err(|error| panicked(&error))?.map_err(Trouble::from)?;
    Ok(id.key)
}

/// The tileable of a chunk that may be put here.
async fn wanted(inner: &Inner, id: &ChunkId) -> Result<Arc<MutableInfo>, Trouble> {
    let info = inner.look_ups.mutable_now(id).await?;
    let key = &id.key;
    if !is_for_puts(&info) {
        let text = format!(
            "chunk {key} is written in place, and only those of tileables named `put.` and so on are put"
        );
        return Err(Trouble::new(Code::FailedPrecondition, text));
    }
    match info.state() {
        MutableState::Open => {}
        MutableState::Sealing | MutableState::Sealed => {
            return Err(MutableError::Sealed { key: key.clone(), epoch: info.epoch }.into());
        }
        _ => return Err(Trouble::new(Code::NotFound, format!("chunk {key} is not to be put any more"))),
    }
    let (here, owners) = (inner.store.address(), owners(&info, id));
    if owners.iter().any(|owner| owner == here) {
        return Ok(info);
    }
    let at = owners.join(", ");
    let text = format!(
        "chunk {key} is to be put at {at}, and this is {here}; next: ask the scheduler where it goes"
    );
    Err(Trouble::new(Code::FailedPrecondition, text))
}

fn check(message: &ChunkData, id: &ChunkId, encoding: i32, seq: u64) -> Result<(), Status> {
    let key = &id.key;
    let invalid = |text: String| Err(Status::invalid_argument(format!("chunk {key}: {text}")));
    if (&message.session_id, &message.chunk_key) != (&id.session, key) {
        return invalid("another one began before its last message".to_owned());
    }
    if message.seq != seq || message.encoding != encoding {
        return invalid(format!(
            "message {} in encoding {} is not its next one",
            message.seq, message.encoding
        ));
    }
    if seq >= PUT_PARTS_MAX {
        return invalid(format!("it comes in {PUT_PARTS_MAX} messages at most; next: put more into each"));
    }
    match &message.error {
        Some(error) => invalid(format!("its sender could not read it: {}", error.message)),
        None => Ok(()),
    }
}

/// Adds one message's bytes. Blocks.
fn append(mut writer: PutWriter, message: ChunkData) -> Result<PutWriter, Trouble> {
    let key = message.chunk_key;
    if crc32c::crc32c(&message.bytes) != message.crc32c {
        let text = format!(
            "chunk {key}: message {} came with other bytes than were sent; next: put it again",
            message.seq
        );
        return Err(Trouble::new(Code::DataLoss, text));
    }
    let invalid = |why: String| Trouble::new(Code::InvalidArgument, format!("chunk {key}: {why}"));
    let how = Compression::try_from(message.compression);
    let how =
        how.map_err(|unknown| invalid(format!("{unknown}; there are none, LZ4 frame, zstd and gzip")))?;
    let bytes = compression::decompress(message.bytes, how, PUT_PART_BYTES_MAX).map_err(|error| {
        invalid(format!(
            "a message cannot be used: {error}; next: put {PUT_PART_BYTES_MAX} bytes at most into one"
        ))
    })?;
    if writer.bytes().saturating_add(bytes.len() as u64) > PUT_CHUNK_BYTES_MAX {
        return Err(invalid(format!(
            "it has more than {PUT_CHUNK_BYTES_MAX} bytes; next: make smaller chunks"
        )));
    }
    writer.append(&bytes)?;
    Ok(writer)
}
