//! Moving a snapshot file to a follower: what it is, then checked chunks. There is no deadline for
//! the whole, which may be large, but one for every chunk, on both sides: a peer that went silent
//! must not hold the leader's task, nor the follower's disk.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::transport::Channel;
use tripod_proto::tripod::peer::v1::SnapshotChunk;
use tripod_proto::tripod::peer::v1::raft_client::RaftClient;

use super::auth::Caller;
use super::unblob;
use crate::codec;
use crate::journal::Blob;
use crate::snapshot::{Header, SnapshotFile, SnapshotStore};
use crate::types::{LogId, Snapshot, Vote};
use crate::world::Work;

/// Bytes of a chunk.
const CHUNK_BYTES: usize = 1 << 20;
/// Chunks that are read ahead of the network.
const CHUNKS_AHEAD: usize = 4;
/// How long one chunk may take.
const CHUNK_IDLE: Duration = Duration::from_secs(10);
/// How long the receiver may take to verify and load the complete file.
pub(crate) const INSTALL_DEADLINE: Duration = Duration::from_mins(10);

/// Comes before the chunks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Offer {
    /// The leader's vote.
    pub(crate) vote: Vote,
    /// The last entry in the snapshot.
    pub(crate) last_log_id: Option<LogId>,
    /// Bytes of the file.
    pub(crate) bytes: u64,
}

/// Sends a snapshot; gives the follower's vote once it is installed there.
pub(crate) async fn send(
    mut client: RaftClient<Channel>,
    caller: &Caller,
    vote: Vote,
    snapshot: Snapshot,
    snapshots: &SnapshotStore,
) -> Result<Vote, Status> {
    let (file, bytes) = open(snapshots, snapshot.snapshot).await?;
    let offer = Offer { vote, last_log_id: snapshot.meta.last_log_id, bytes };
    let (chunks, queue) = mpsc::channel(CHUNKS_AHEAD);
    let call = client.install_snapshot(caller.request(ReceiverStream::new(queue)));
    let call = tokio::time::timeout(INSTALL_DEADLINE + idle_total(bytes), call);
    let (answer, sent) = tokio::join!(call, push_chunks(file, offer, chunks, snapshots.work()));
    // The receiver's refusal is the better explanation of a push that failed.
    let answer = answer.map_err(|_| Status::deadline_exceeded("the snapshot was not installed in time"))?;
    let answer = answer.map_err(|status| match sent {
        Err(own) if status.code() == tonic::Code::Cancelled => own,
        _ => status,
    })?;
    unblob(answer.get_ref())
}

/// A file and its size in bytes.
async fn open(snapshots: &SnapshotStore, file: SnapshotFile) -> io::Result<(Arc<dyn Blob>, u64)> {
    let opened = snapshots.work().run(move || {
        let file = file.open()?;
        let bytes = file.size()?;
        Ok((file, bytes))
    });
    opened.await?
}

/// As long as every chunk arrives within its own deadline, the whole may take this long.
fn idle_total(bytes: u64) -> Duration {
    let chunks = u32::try_from(bytes / CHUNK_BYTES as u64 + 1).unwrap_or(u32::MAX);
    CHUNK_IDLE.saturating_mul(chunks)
}

async fn push_chunks(
    file: Arc<dyn Blob>,
    offer: Offer,
    chunks: mpsc::Sender<SnapshotChunk>,
    work: &Work,
) -> Result<(), Status> {
    let mut next = SnapshotChunk { meta: codec::encode(&offer).into(), ..SnapshotChunk::default() };
    let mut offset = 0;
    loop {
        let slot = tokio::time::timeout(CHUNK_IDLE, chunks.reserve()).await;
        let slot = slot.map_err(|_| Status::deadline_exceeded("the receiver stopped taking chunks"))?;
        slot.map_err(|_| Status::cancelled("the receiver ended the transfer"))?.send(next);
        let data = read_chunk(&file, offset, work).await?;
        if data.is_empty() {
            return Ok(());
        }
        let (crc32c, length) = (crc32c::crc32c(&data), data.len() as u64);
        next = SnapshotChunk { meta: Bytes::new(), offset, data: data.into(), crc32c };
        offset += length;
    }
}

async fn read_chunk(file: &Arc<dyn Blob>, offset_bytes: u64, work: &Work) -> io::Result<Vec<u8>> {
    let file = file.clone();
    let read = work.run(move || {
        let mut data = vec![0; CHUNK_BYTES];
        let read = file.read_at(offset_bytes, &mut data)?;
        data.truncate(read);
        Ok(data)
    });
    read.await?
}

/// An incoming file. It goes with its owner unless it was installed, and so renamed, before.
#[derive(Debug)]
pub(crate) struct PartFile(SnapshotFile);

impl PartFile {
    pub(crate) fn file(&self) -> &SnapshotFile {
        &self.0
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if let Err(error) = self.0.remove() {
            tracing::warn!(%error, path = %self.0, "incoming snapshot not removed");
        }
    }
}

/// A snapshot that came complete.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) offer: Offer,
    pub(crate) header: Header,
    /// Verified and durable.
    pub(crate) part: PartFile,
}

/// Receives a snapshot into a file of its own and verifies it. A transfer that fails leaves no file.
pub(crate) async fn receive(
    chunks: &mut (impl Stream<Item = Result<SnapshotChunk, Status>> + Unpin),
    snapshots: &SnapshotStore,
    cluster_id: &str,
) -> Result<Received, Status> {
    let first = next_chunk(chunks).await?.ok_or_else(|| Status::invalid_argument("the transfer is empty"))?;
    let offer: Offer = codec::decode(&first.meta)
        .map_err(|error| Status::invalid_argument(format!("snapshot offer refused: {error}")))?;
    let store = snapshots.clone();
    let (file, blob) = snapshots.work().run(move || store.create_part()).await??;
    let part = PartFile(file);
    let mut offset = 0;
    while let Some(chunk) = next_chunk(chunks).await? {
        if chunk.offset != offset {
            let text = format!("chunk at offset {} came instead of {offset}", chunk.offset);
            return Err(Status::data_loss(text));
        }
        if crc32c::crc32c(&chunk.data) != chunk.crc32c {
            return Err(Status::data_loss(format!("the checksum of the chunk at offset {offset} is wrong")));
        }
        let at = offset;
        offset += chunk.data.len() as u64;
        if offset > offer.bytes {
            return Err(Status::data_loss(format!("more than the announced {} bytes came", offer.bytes)));
        }
        let blob = blob.clone();
        snapshots.work().run(move || blob.write_at(at, &chunk.data)).await??;
    }
    if offset != offer.bytes {
        return Err(Status::data_loss(format!("{offset} of {} bytes came", offer.bytes)));
    }
    let file = part.file().clone();
    let verified = snapshots.work().run(move || {
        blob.sync_data()?;
        Ok::<_, io::Error>(file.verify())
    });
    let verified = verified.await??;
    let header = verified.map_err(|error| Status::data_loss(format!("snapshot refused: {error}")))?;
    if header.cluster_id != cluster_id {
        let text = format!("snapshot of cluster {} refused: this is cluster {cluster_id}", header.cluster_id);
        return Err(Status::failed_precondition(text));
    }
    if header.last_log_id != offer.last_log_id {
        return Err(Status::data_loss("the snapshot is not the one that was offered"));
    }
    Ok(Received { offer, header, part })
}

async fn next_chunk(
    chunks: &mut (impl Stream<Item = Result<SnapshotChunk, Status>> + Unpin),
) -> Result<Option<SnapshotChunk>, Status> {
    let chunk = tokio::time::timeout(CHUNK_IDLE, chunks.next()).await;
    chunk.map_err(|_| Status::deadline_exceeded("no chunk of the snapshot came in time"))?.transpose()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use tokio::time::Instant;
    use tripod_state::State;

    use super::*;
    use crate::types::Membership;

    const CLUSTER: &str = "test";

    fn store(directory: &TempDir, name: &str) -> SnapshotStore {
        SnapshotStore::open_directory(&directory.path().join(name)).unwrap()
    }

    fn snapshot_of(store: &SnapshotStore) -> Snapshot {
        let state = State::default();
        let header = Header {
            cluster_id: CLUSTER.into(),
            last_log_id: None,
            membership: Membership::default(),
            digest: state.digest(),
        };
        store.write(&header, &state).unwrap()
    }

    /// What a sender of `snapshot` puts on the wire, offer included.
    async fn chunks_of(store: &SnapshotStore) -> Vec<SnapshotChunk> {
        let snapshot = snapshot_of(store);
        let (file, bytes) = open(store, snapshot.snapshot).await.unwrap();
        let offer = Offer { vote: Vote::new(1, 1), last_log_id: snapshot.meta.last_log_id, bytes };
        let (sender, taken) = mpsc::channel(CHUNKS_AHEAD);
        let (sent, chunks) = tokio::join!(
            push_chunks(file, offer, sender, store.work()),
            ReceiverStream::new(taken).collect()
        );
        sent.unwrap();
        chunks
    }

    fn files(directory: &TempDir, name: &str) -> usize {
        std::fs::read_dir(directory.path().join(name)).unwrap().count()
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_that_stalls_in_the_middle_is_given_up_and_the_next_one_is_received() {
        let directory = TempDir::new().unwrap();
        let snapshots = store(&directory, "receiver");
        let chunks = chunks_of(&store(&directory, "sender")).await;
        let (line, mut arriving) = {
            let (line, arriving) = mpsc::channel(CHUNKS_AHEAD);
            (line, ReceiverStream::new(arriving))
        };
        let began = Instant::now();
        let stalling = async {
            // The offer, then half of a chunk's worth, and then nothing; the line stays open.
            let mut half = chunks[1].clone();
            half.data = half.data.slice(..half.data.len() / 2);
            half.crc32c = crc32c::crc32c(&half.data);
            line.send(Ok(chunks[0].clone())).await.unwrap();
            tokio::time::sleep(CHUNK_IDLE - Duration::from_secs(1)).await;
            line.send(Ok(half)).await.unwrap();
            tokio::time::sleep(CHUNK_IDLE / 2).await;
            assert_eq!(files(&directory, "receiver"), 1, "the transfer is under way");
        };
        let (refused, ()) = tokio::join!(receive(&mut arriving, &snapshots, CLUSTER), stalling);
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::DeadlineExceeded);
        assert!(refused.message().contains("no chunk of the snapshot came in time"), "{refused}");
        assert!(began.elapsed() >= 2 * CHUNK_IDLE - Duration::from_secs(1), "slow is not idle");
        assert!(began.elapsed() < 3 * CHUNK_IDLE);
        assert_eq!(files(&directory, "receiver"), 0, "nothing of it stays");

        let mut again = futures::stream::iter(chunks.into_iter().map(Ok));
        let received = receive(&mut again, &snapshots, CLUSTER).await.unwrap();
        assert_eq!(received.header.cluster_id, CLUSTER);
        assert_eq!(files(&directory, "receiver"), 1);
        drop(received);
        assert_eq!(files(&directory, "receiver"), 0, "nor of one that nobody installed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_that_stops_taking_chunks_is_given_up_after_the_idle_deadline() {
        let directory = TempDir::new().unwrap();
        let snapshots = store(&directory, "sender");
        let (_, file) = snapshots.create_part().unwrap();
        file.write_at(0, &vec![7; 4 * CHUNK_BYTES]).unwrap();
        let offer = Offer { vote: Vote::new(1, 1), last_log_id: None, bytes: 4 * CHUNK_BYTES as u64 };
        let (chunks, mut taken) = mpsc::channel(1);
        let sending = tokio::spawn(async move { push_chunks(file, offer, chunks, snapshots.work()).await });
        // Slow is not idle: each chunk may take nearly the whole deadline.
        let began = Instant::now();
        for _ in 0..2 {
            tokio::time::sleep(CHUNK_IDLE - Duration::from_secs(1)).await;
            taken.recv().await.unwrap();
        }
        let refused = sending.await.unwrap().unwrap_err();
        assert_eq!(refused.code(), tonic::Code::DeadlineExceeded);
        assert!(began.elapsed() >= 2 * (CHUNK_IDLE - Duration::from_secs(1)) + CHUNK_IDLE);
        assert!(began.elapsed() < 4 * CHUNK_IDLE);
    }
}
