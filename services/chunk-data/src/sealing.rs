//! `SealMutableChunks`: what was written becomes objects, under ids that the log gave.

use std::sync::Arc;

use tokio::task::spawn_blocking;
use tonic::{Code, Status};
use tripod_proto::mars::v1::{ChunkObject, MutableInfo, SealMutableChunksRequest, SealedChunk};

use crate::layout::{Buffer, Chunk};
use crate::mutable::{ChunkId, Definition, is_for_puts};
use crate::put_chunk::PutChunk;
use crate::reading::{AsOf, Cells, Content, cells_of, current, readable};
use crate::request::check_keys;
use crate::service::Inner;
use crate::status::{Trouble, panicked};
use crate::store::Whereabouts;

/// What came of each chunk, in their order.
///
/// # Errors
/// `INVALID_ARGUMENT` for what passes a bound.
pub(crate) async fn seal(
    inner: &Arc<Inner>,
    request: SealMutableChunksRequest,
) -> Result<Vec<SealedChunk>, Status> {
    let SealMutableChunksRequest { session_id: session, epoch, chunks } = request;
    let keys: Vec<String> = chunks.iter().map(|chunk| chunk.key.clone()).collect();
    check_keys(&session, &keys)?;
    let mut sealed = Vec::with_capacity(chunks.len());
    for ChunkObject { key, object_id } in chunks {
        let id = ChunkId { session: session.clone(), key: key.clone() };
        let made = make(inner, id, epoch, object_id).await;
        sealed.push(SealedChunk { key, error: made.err().map(Trouble::message) });
    }
    Ok(sealed)
}

async fn make(inner: &Arc<Inner>, id: ChunkId, epoch: u64, object: u64) -> Result<(), Trouble> {
    inner.engine()?;
    let info = current(inner, &id, epoch, true).await?;
    if is_for_puts(&info) {
        return make_of_put(inner, id, &info, object).await;
    }
    let as_of = AsOf { epoch, timestamp_ns: None, seal: true, any_owner: true };
    let Cells { definition, content, permit } = cells_of(inner, id, &info, as_of).await?;
    let described = spawn_blocking(move || {
        let Definition { element, shape, .. } = definition;
        match content {
            Content::Tensor(values) => Chunk::Tensor { element, shape, values: Buffer::of(values.into()) },
            Content::Frame(chunk) => chunk,
        }
        .object()
    });
    let (pieces, metadata_offset) = described.await.map_err(|error| panicked(&error))?;
    inner.store.make(object, pieces, metadata_offset).await?;
    drop(permit);
    Ok(())
}

/// The object of a chunk that was put. One that was not is a refusal: another owner may have it, or its client puts it again.
async fn make_of_put(
    inner: &Arc<Inner>,
    id: ChunkId,
    info: &MutableInfo,
    object: u64,
) -> Result<(), Trouble> {
    readable(info, &id, true)?;
    if inner.store.whereabouts(object) == Whereabouts::Here {
        return Ok(());
    }
    let put = inner.engine()?.find_put(&id, info.id).ok_or_else(|| {
        let here = inner.store.address();
        Trouble::new(Code::NotFound, format!("chunk {} was not put at worker {here}", id.key))
    })?;
    let expected = PutChunk::of(info, &id.key)?;
    let permit = Arc::clone(&inner.materialised).acquire_owned().await;
    let permit = permit.map_err(|_| Trouble::new(Code::Unavailable, "the store ends"))?;
    let read = spawn_blocking(move || {
        let image = put.image()?;
        Ok::<_, Trouble>(expected.read(put.encoding(), &image)?.object())
    });
    let (pieces, metadata_offset) = read.await.map_err(|error| panicked(&error))??;
    inner.store.make(object, pieces, metadata_offset).await?;
    drop(permit);
    inner.sealed.notify_one();
    Ok(())
}
