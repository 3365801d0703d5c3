//! `PutMutableChunksData`.

use std::sync::Arc;

use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt as _};
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};
use tripod_proto::mars::v1::{MutableBatch, MutableState};
use tripod_proto::metadata::MARS_COPY_NEXT;

use crate::copying;
use crate::limits::{BATCH_BYTES_MAX, GROUP_MAX, WRITE_PATIENCE};
use crate::mutable::{ChunkId, Definition, MutableError, Put, Stored};
use crate::reading::{check_first, current, owners};
use crate::request::Batch;
use crate::service::Inner;
use crate::status::{Trouble, panicked};

/// Batches of one chunk and epoch, in the order in which they came.
#[derive(Debug)]
struct Group {
    id: ChunkId,
    epoch: u64,
    batches: Vec<Stored>,
}

/// Writes all batches of a call; what was written before an error stays. `first` is the place that the first owner gave to
/// the first batch, if it sends them.
///
/// # Errors
/// The status of the first batch that is refused. Some may have been written: with their numbers they count once.
pub(crate) async fn put(
    inner: &Arc<Inner>,
    mut batches: impl Stream<Item = Result<MutableBatch, Status>> + Unpin,
    mut first: Option<u64>,
) -> Result<Put, Status> {
    let mut all = Put::default();
    let mut ended = false;
    while !ended {
        let mut groups: Vec<Group> = Vec::new();
        let (mut count, mut bytes) = (0, 0);
        while count < GROUP_MAX && bytes < BATCH_BYTES_MAX {
            let next = timeout(WRITE_PATIENCE, batches.next()).await.map_err(|_| {
                let waited_s = WRITE_PATIENCE.as_secs();
                Status::deadline_exceeded(format!(
                    "no batch came for {waited_s} s; what was not answered may count or not"
                ))
            })?;
            let Some(message) = next else {
                ended = true;
                break;
            };
            let Batch { id, epoch, stored } = Batch::of(message?)?;
            count += 1;
            bytes += stored.values.len() + 8 * stored.places.len();
            match groups.iter_mut().find(|group| (&group.id, group.epoch) == (&id, epoch)) {
                Some(group) => group.batches.push(stored),
                None => groups.push(Group { id, epoch, batches: vec![stored] }),
            }
        }
        if first.is_some() && groups.len() > 1 {
            return Err(Status::invalid_argument("copies of one chunk come in one call"));
        }
        for group in groups {
            let written = group.batches.len() as u64;
            let put = match first {
                None => put_group(inner, group).await?,
                Some(place) => put_copies(inner, group, place).await?,
            };
            first = first.map(|place| place.saturating_add(written));
            all.accepted += put.accepted;
            all.duplicates += put.duplicates;
        }
    }
    Ok(all)
}

async fn put_group(inner: &Arc<Inner>, group: Group) -> Result<Put, Status> {
    let Group { id, epoch, batches } = group;
    let engine = Arc::clone(inner.engine()?);
    let mut info = current(inner, &id, epoch, false).await?;
    if info.state() != MutableState::Open {
        info = current(inner, &id, epoch, true).await?;
    }
    writable(info.state(), &id, epoch)?;
    check_first(&info, &id, inner.store.address())?;
    let definition = Definition::of(&info, &id.key).map_err(Trouble::from)?;
    let (opening, opened) = (Arc::clone(&engine), id.clone());
    let slot = spawn_blocking(move || opening.open_chunk(&opened, &definition, epoch)).await;
    let slot = slot.map_err(|error| panicked(&error))?.map_err(Trouble::from)?;
    let turn = slot.turn.lock().await;
    // It may have been sealed while others had their turn.
    inner.look_ups.check_furthest(&id, &info).map_err(Trouble::from)?;
    let (written, of) = (id.clone(), Arc::clone(&slot));
    let put = spawn_blocking(move || engine.put(&written, &of, epoch, batches)).await;
    let put = put.map_err(|error| panicked(&error))?.map_err(Trouble::from)?;
    copying::confirm(inner, &id, &slot, &info).await?;
    drop(turn);
    Ok(put)
}

/// What the first owner sends to another one.
async fn put_copies(inner: &Arc<Inner>, group: Group, first: u64) -> Result<Put, Status> {
    let Group { id, epoch, batches } = group;
    let engine = Arc::clone(inner.engine()?);
    let info = current(inner, &id, epoch, false).await?;
    let here = inner.store.address();
    if !owners(&info, &id).iter().skip(1).any(|owner| owner == here) {
        let text = format!("worker {here} has no copy of mutable chunk {}", id.key);
        return Err(Status::failed_precondition(text));
    }
    let definition = Definition::of(&info, &id.key).map_err(Trouble::from)?;
    let put = spawn_blocking(move || {
        let slot = engine.open_chunk(&id, &definition, epoch)?;
        engine.put_copy(&id, &slot, first, batches)
    });
    match put.await.map_err(|error| panicked(&error))? {
        Ok(put) => Ok(put),
        Err(error) => {
            let next = if let MutableError::Behind { next } = error { Some(next) } else { None };
            let mut status = Status::from(Trouble::from(error));
            if let Some(next) = next {
                status.metadata_mut().insert(MARS_COPY_NEXT, MetadataValue::from(next));
            }
            Err(status)
        }
    }
}

fn writable(state: MutableState, id: &ChunkId, epoch: u64) -> Result<(), Trouble> {
    let key = &id.key;
    match state {
        MutableState::Open => Ok(()),
        MutableState::Sealing | MutableState::Sealed => {
            Err(MutableError::Sealed { key: key.clone(), epoch }.into())
        }
        MutableState::Lost => Err(Trouble::new(Code::DataLoss, format!("chunk {key} was lost"))),
        MutableState::Deleted | MutableState::Unspecified => {
            Err(Trouble::new(Code::NotFound, format!("chunk {key} is no mutable chunk any more")))
        }
    }
}
