//! `DropChunks`: what nobody can read any more.

use std::sync::Arc;

use tokio::task::spawn_blocking;
use tonic::{Code, Status};
use tripod_proto::mars::v1::MutableState;

use crate::mutable::ChunkId;
use crate::request::check_keys;
use crate::service::Inner;
use crate::status::{Trouble, panicked};

/// Removes mutable chunks that were sealed or deleted, as the scheduler says; answers how many. Objects go when the scheduler
/// has the store deallocate them, so of other chunks only what was remembered of them is forgotten.
///
/// # Errors
/// `INVALID_ARGUMENT`, or that no node says what became of a chunk.
pub(crate) async fn drop_chunks(inner: &Arc<Inner>, session: &str, keys: &[String]) -> Result<u64, Status> {
    check_keys(session, keys)?;
    let mut dropped = 0;
    for key in keys {
        inner.look_ups.forget(session, key);
        let id = ChunkId { session: session.to_owned(), key: key.clone() };
        let Ok(engine) = inner.engine().map(Arc::clone) else { continue };
        let (finding, found) = (Arc::clone(&engine), id.clone());
        let found = spawn_blocking(move || finding.find(&found).is_some()).await;
        if !found.map_err(|error| panicked(&error))? || is_needed(inner, &id).await? {
            continue;
        }
        let removed = spawn_blocking(move || engine.forget(&id)).await;
        dropped += u64::from(removed.map_err(|error| panicked(&error))?.map_err(Trouble::from)?);
    }
    Ok(dropped)
}

async fn is_needed(inner: &Inner, id: &ChunkId) -> Result<bool, Status> {
    match inner.look_ups.mutable_now(id).await {
        Ok(info) => Ok(matches!(info.state(), MutableState::Open | MutableState::Sealing)),
        Err(status) if status.code() == Code::NotFound => Ok(false),
        Err(status) => Err(status),
    }
}
