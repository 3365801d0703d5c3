//! Batches of the first owner of a chunk to the others, before they are answered.

use std::sync::Arc;

use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Status};
use tripod_proto::mars::v1::MutableInfo;
use tripod_proto::metadata::{MARS_COPY_FIRST, MARS_COPY_NEXT};

use crate::limits::{COPY_BYTES, COPY_PATIENCE};
use crate::mutable::{ChunkId, Progress, Slot, Stored};
use crate::reading::owners;
use crate::request::Batch;
use crate::service::Inner;
use crate::status::{Trouble, panicked};

/// Sends the other owners what they do not have; then all of it counts. The caller has the chunk's turn.
///
/// # Errors
/// `UNAVAILABLE` if one of them does not answer: the batches stay here, are not read, and count when they are sent again.
pub(crate) async fn confirm(
    inner: &Arc<Inner>,
    id: &ChunkId,
    slot: &Arc<Slot>,
    info: &MutableInfo,
) -> Result<(), Trouble> {
    let Progress { next, confirmed, .. } = progress(inner, id, slot).await?;
    for other in owners(info, id).iter().skip(1) {
        copy(inner, id, slot, info.epoch, other, confirmed).await?;
    }
    let (engine, id, slot) = (Arc::clone(inner.engine()?), id.clone(), Arc::clone(slot));
    let confirmed = spawn_blocking(move || engine.confirm(&id, &slot, next)).await;
    Ok(confirmed.map_err(|error| panicked(&error))??)
}

/// Before the chunk is read: if this store was started anew, some batches may have been answered of which it does not know
/// whether they were. Then it is confirmed first.
///
/// # Errors
/// As [`confirm`].
pub(crate) async fn settle(
    inner: &Arc<Inner>,
    id: &ChunkId,
    slot: &Arc<Slot>,
    info: &MutableInfo,
) -> Result<(), Trouble> {
    let alone = owners(info, id).len() <= 1;
    if progress(inner, id, slot).await?.sure && !alone {
        Ok(())
    } else {
        confirm(inner, id, slot, info).await
    }
}

async fn progress(inner: &Arc<Inner>, id: &ChunkId, slot: &Arc<Slot>) -> Result<Progress, Trouble> {
    let (engine, id, slot) = (Arc::clone(inner.engine()?), id.clone(), Arc::clone(slot));
    let progress = spawn_blocking(move || engine.progress(&id, &slot)).await;
    Ok(progress.map_err(|error| panicked(&error))??)
}

async fn copy(
    inner: &Arc<Inner>,
    id: &ChunkId,
    slot: &Arc<Slot>,
    epoch: u64,
    other: &str,
    confirmed: u64,
) -> Result<(), Trouble> {
    let mut first = confirmed;
    let mut told = false;
    loop {
        let (engine, of, from) = (Arc::clone(inner.engine()?), id.clone(), Arc::clone(slot));
        let batches = spawn_blocking(move || engine.batches(&of, &from, first, COPY_BYTES)).await;
        let batches = batches.map_err(|error| panicked(&error))??;
        if batches.is_empty() {
            return Ok(());
        }
        let count = batches.len() as u64;
        match send(inner, id, epoch, other, first, batches).await {
            Ok(()) => first += count,
            Err(status) => {
                let next =
                    status.metadata().get(MARS_COPY_NEXT).and_then(|next| next.to_str().ok()?.parse().ok());
                match next {
                    // It has less than was confirmed to have: another owner, or one that lost its disk. Once.
                    Some(next) if next < first && !std::mem::replace(&mut told, true) => first = next,
                    _ => return Err(refused(id, other, &status)),
                }
            }
        }
    }
}

async fn send(
    inner: &Inner,
    id: &ChunkId,
    epoch: u64,
    other: &str,
    first: u64,
    batches: Vec<Stored>,
) -> Result<(), Status> {
    let messages: Vec<_> = batches.into_iter().map(|batch| Batch::message(id, epoch, batch)).collect();
    let sent = async {
        let mut worker = inner.store.worker(other).await.map_err(Status::unavailable)?;
        let mut request = Request::new(tokio_stream::iter(messages));
        request.metadata_mut().insert(MARS_COPY_FIRST, MetadataValue::from(first));
        worker.put_mutable_chunks_data(request).await
    };
    match timeout(COPY_PATIENCE, sent).await {
        Ok(answered) => answered.map(drop),
        Err(_) => Err(Status::unavailable(format!("no answer within {} s", COPY_PATIENCE.as_secs()))),
    }
}

fn refused(id: &ChunkId, other: &str, status: &Status) -> Trouble {
    let code = match status.code() {
        code @ (Code::Aborted | Code::DataLoss | Code::ResourceExhausted) => code,
        _ => Code::Unavailable,
    };
    let text = format!(
        "chunk {}: worker {other}, which is to have a copy, has not: {}; next: send the batches again, with their numbers",
        id.key,
        status.message()
    );
    Trouble::new(code, text)
}
