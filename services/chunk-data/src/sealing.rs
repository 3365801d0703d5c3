//! `SealMutableChunks`: what was written becomes objects, under ids that the log gave.

use std::sync::Arc;

use tokio::task::spawn_blocking;
use tonic::Status;
use tripod_proto::mars::v1::{ChunkObject, SealMutableChunksRequest, SealedChunk};

use crate::layout::{Buffer, Chunk};
use crate::mutable::ChunkId;
use crate::reading::{AsOf, Cells, cells};
use crate::request::check_keys;
use crate::service::Inner;
use crate::status::{Trouble, panicked};

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
    let as_of = AsOf { epoch, timestamp_ns: None, seal: true, any_owner: true };
    let Cells { definition, values, permit } = cells(inner, id, as_of).await?;
    let described = spawn_blocking(move || {
        let (element, shape) = (definition.element, definition.shape);
        Chunk::Tensor { element, shape, values: Buffer::of(values.into()) }.object()
    });
    let (pieces, metadata_offset) = described.await.map_err(|error| panicked(&error))?;
    inner.store.make(object, pieces, metadata_offset).await?;
    drop(permit);
    Ok(())
}
