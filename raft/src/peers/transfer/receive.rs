//! The follower's side of a transfer.

use futures::{Stream, StreamExt};
use tonic::Status;
use tripod_proto::tripod::peer::v1::{SnapshotChunk, SnapshotOffer};

use super::{CHUNK_IDLE, Offer};
use crate::base::codec;
use crate::snapshot::{FileId, Header, Part, Snapshot, SnapshotStore, Turn};

/// A snapshot that is complete here.
pub(crate) struct Received {
    pub(crate) offer: Offer,
    pub(crate) snapshot: Snapshot,
    /// Its file, verified and durable, if it came just now; it goes with this unless it was installed. Absent
    /// if what is here already reaches as far.
    pub(crate) part: Option<Part>,
    /// Keeps others from beginning a transfer.
    pub(crate) turn: Turn,
}

/// How many bytes of an offered file are here, so that it can be sent from there on: all of them if nothing
/// in it would be new.
pub(crate) async fn held(
    question: &SnapshotOffer,
    snapshots: &SnapshotStore,
    check: impl Fn(&Offer) -> Result<(), Status>,
) -> Result<u64, Status> {
    let offer = decode(&question.meta)?;
    check(&offer)?;
    let Some(id) = offer.file(&question.seal) else { return Ok(0) };
    let turn = turn(&offer, snapshots).await?;
    Ok(if snapshots.reaches(offer.last_log_id) { offer.bytes } else { turn.held_bytes(&id) })
}

/// Receives a snapshot into a file of its own, or into what an earlier transfer of the same file left, and
/// verifies it. A transfer that breaks leaves what it brought; one that brought something wrong, nothing.
pub(crate) async fn receive(
    chunks: &mut (impl Stream<Item = Result<SnapshotChunk, Status>> + Unpin),
    snapshots: &SnapshotStore,
    cluster_id: &str,
    check: impl Fn(&Offer) -> Result<(), Status>,
) -> Result<Received, Status> {
    let first = next_chunk(chunks).await?.ok_or_else(|| Status::invalid_argument("the transfer is empty"))?;
    let offer = decode(&first.meta)?;
    // Before it takes the turn of another one.
    check(&offer)?;
    let id = offer.file(&first.seal);
    let mut turn = turn(&offer, snapshots).await?;
    if id.is_some()
        && first.offset == offer.bytes
        && snapshots.reaches(offer.last_log_id)
        && let Some(snapshot) = snapshots.current()
    {
        return Ok(Received { offer, snapshot, part: None, turn });
    }
    begin(&mut turn, id, first.offset, snapshots).await?;
    let wanted = turn.wanted();
    tokio::pin!(wanted);
    loop {
        let chunk = tokio::select! {
            biased;
            () = &mut wanted => return Err(Status::aborted("another transfer of a snapshot has begun")),
            chunk = next_chunk(chunks) => chunk?,
        };
        let Some(chunk) = chunk else { break };
        if let Err(wrong) = take(&mut turn, &offer, chunk, snapshots).await? {
            turn.discard().await;
            return Err(wrong);
        }
    }
    let came = turn.part().map_or(0, |part| part.received_bytes());
    if came != offer.bytes {
        return Err(Status::data_loss(format!("{came} of {} bytes came", offer.bytes)));
    }
    match verify(&mut turn, &offer, snapshots, cluster_id).await? {
        Ok(header) => {
            let part = turn.take().expect("it was verified just now");
            let snapshot = Snapshot { meta: header.meta(), snapshot: part.file().snapshot().clone() };
            let resumed_at = first.offset;
            tracing::info!(last_log_id = ?offer.last_log_id, bytes = came, resumed_at, "snapshot received");
            Ok(Received { offer, snapshot, part: Some(part), turn })
        }
        Err(wrong) => {
            turn.discard().await;
            Err(wrong)
        }
    }
}

fn decode(meta: &[u8]) -> Result<Offer, Status> {
    codec::decode(meta).map_err(|error| Status::invalid_argument(format!("snapshot offer refused: {error}")))
}

async fn turn(offer: &Offer, snapshots: &SnapshotStore) -> Result<Turn, Status> {
    let turn = snapshots.incoming().turn(offer.vote).await;
    turn.ok_or_else(|| Status::aborted("a later transfer of a snapshot has begun"))
}

/// Makes the turn's part the one that is to be written, from `offset` on.
async fn begin(
    turn: &mut Turn,
    id: Option<FileId>,
    offset: u64,
    snapshots: &SnapshotStore,
) -> Result<(), Status> {
    let held = id.as_ref().map_or(0, |id| turn.held_bytes(id));
    if offset > 0 && offset == held {
        return Ok(());
    }
    if offset > 0 {
        let text = format!("the transfer begins at byte {offset}, {held} are here; ask what is");
        return Err(Status::aborted(text));
    }
    turn.discard().await;
    let store = snapshots.clone();
    turn.begin(snapshots.work().run(move || store.begin_part(id)).await??);
    Ok(())
}

/// Checks and writes a chunk. The inner error means that what came before it is not to be trusted, or cannot
/// be kept, either.
async fn take(
    turn: &mut Turn,
    offer: &Offer,
    chunk: SnapshotChunk,
    snapshots: &SnapshotStore,
) -> Result<Result<(), Status>, Status> {
    let part = turn.part().expect("a transfer has a part");
    let offset = part.received_bytes();
    if chunk.offset != offset {
        let text = format!("chunk at offset {} came instead of {offset}", chunk.offset);
        return Err(Status::data_loss(text));
    }
    if crc32c::crc32c(&chunk.data) != chunk.crc32c {
        return Err(Status::data_loss(format!("the checksum of the chunk at offset {offset} is wrong")));
    }
    let length = chunk.data.len() as u64;
    if offset + length > offer.bytes {
        let text = format!("more than the announced {} bytes came", offer.bytes);
        return Ok(Err(Status::data_loss(text)));
    }
    let file = part.file().clone();
    let written = snapshots.work().run(move || file.write_at(offset, &chunk.data)).await?;
    if let Err(error) = written {
        // On a full disk what is left of it would keep others from going on.
        return Ok(Err(error.into()));
    }
    part.advance(length);
    Ok(Ok(()))
}

/// Makes the complete file durable and checks all of it. The inner error means that it is not to be kept: it
/// is not what was offered, or the disk lost some of it.
async fn verify(
    turn: &mut Turn,
    offer: &Offer,
    snapshots: &SnapshotStore,
    cluster_id: &str,
) -> Result<Result<Header, Status>, Status> {
    let part = turn.part().expect("a transfer has a part");
    let file = part.file().clone();
    let verified = snapshots.work().run(move || file.sync_data().map(|()| file.snapshot().verify()));
    let header = match verified.await? {
        Ok(Ok(header)) => header,
        Ok(Err(error)) => return Ok(Err(Status::data_loss(format!("snapshot refused: {error}")))),
        Err(error) => return Ok(Err(error.into())),
    };
    Ok(if header.cluster_id != cluster_id {
        let text = format!("snapshot of cluster {} refused: this is cluster {cluster_id}", header.cluster_id);
        Err(Status::failed_precondition(text))
    } else if header.last_log_id != offer.last_log_id {
        Err(Status::data_loss("the snapshot is not the one that was offered"))
    } else {
        Ok(header)
    })
}

async fn next_chunk(
    chunks: &mut (impl Stream<Item = Result<SnapshotChunk, Status>> + Unpin),
) -> Result<Option<SnapshotChunk>, Status> {
    let chunk = tokio::time::timeout(CHUNK_IDLE, chunks.next()).await;
    chunk.map_err(|_| Status::deadline_exceeded("no chunk of the snapshot came in time"))?.transpose()
}
