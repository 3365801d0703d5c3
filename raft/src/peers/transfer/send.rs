//! The leader's side of a transfer.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tripod_proto::tripod::peer::v1::raft_client::RaftClient;
use tripod_proto::tripod::peer::v1::{SnapshotChunk, SnapshotOffer};

use super::{CHUNK_BYTES, CHUNK_IDLE, CHUNKS_AHEAD, INSTALL_DEADLINE, Offer};
use crate::base::codec;
use crate::base::types::Vote;
use crate::disk::{Blob, Work};
use crate::peers::auth::Caller;
use crate::peers::unblob;
use crate::snapshot::{Snapshot, SnapshotStore};

/// How long a follower may be out of reach before a transfer that broke is given up. openraft begins another
/// one then, of the newest snapshot.
const RESUME_PATIENCE: Duration = Duration::from_secs(10);
/// Attempts in a row that bring nothing, before it is given up, too.
const FRUITLESS_MAX: u32 = 10;
/// Between two attempts.
const RESUME_PAUSE: Duration = Duration::from_millis(100);

/// Sends a snapshot; gives the follower's vote once it is installed there. When the connection breaks, goes on
/// behind what the follower holds.
pub(crate) async fn send(
    client: RaftClient<Channel>,
    caller: &Caller,
    vote: Vote,
    snapshot: Snapshot,
    snapshots: &SnapshotStore,
) -> Result<Vote, Status> {
    let file = Outgoing::open(snapshots, snapshot, vote).await?;
    let sender = Sender { client, caller, file };
    let mut from_bytes = sender.ask().await?;
    let mut fruitless = 0;
    loop {
        let failure = match sender.attempt(from_bytes).await {
            Ok(vote) => return Ok(vote),
            Err(failure) => failure,
        };
        let Some(held) = sender.ask_patiently().await else { return Err(failure) };
        fruitless = if held > from_bytes { 0 } else { fruitless + 1 };
        if held == 0 || fruitless > FRUITLESS_MAX {
            return Err(failure);
        }
        from_bytes = held;
        tracing::info!(from_bytes, bytes = sender.file.offer.bytes, %failure, "snapshot transfer resumed");
    }
}

/// One file on its way to one follower.
struct Sender<'a> {
    client: RaftClient<Channel>,
    caller: &'a Caller,
    file: Outgoing,
}

impl Sender<'_> {
    /// How many bytes of the file the follower holds.
    async fn ask(&self) -> Result<u64, Status> {
        let offer = SnapshotOffer { meta: self.file.meta(), seal: self.file.seal.clone() };
        let mut client = self.client.clone();
        let call = client.held_snapshot(self.caller.request(offer));
        let answer = tokio::time::timeout(CHUNK_IDLE, call).await;
        match answer.map_err(|_| Status::deadline_exceeded("the receiver does not say what it holds"))? {
            Ok(held) => Ok(held.get_ref().bytes.min(self.file.offer.bytes)),
            // It cannot resume.
            Err(status) if status.code() == Code::Unimplemented => Ok(0),
            Err(status) => Err(status),
        }
    }

    /// [`Self::ask`], until there is an answer. `None`: there is none in time.
    async fn ask_patiently(&self) -> Option<u64> {
        let deadline = Instant::now() + RESUME_PATIENCE;
        loop {
            tokio::time::sleep(RESUME_PAUSE).await;
            match self.ask().await {
                Ok(held) => return Some(held),
                Err(_) if Instant::now() < deadline => {}
                Err(_) => return None,
            }
        }
    }

    /// Sends everything from an offset on, and waits until the file is installed.
    async fn attempt(&self, from_bytes: u64) -> Result<Vote, Status> {
        let (chunks, queue) = mpsc::channel(CHUNKS_AHEAD);
        let mut client = self.client.clone();
        let call = client.install_snapshot(self.caller.request(ReceiverStream::new(queue)));
        let call = tokio::time::timeout(INSTALL_DEADLINE + idle_total(self.file.offer.bytes), call);
        let (answer, sent) = tokio::join!(call, self.file.push(from_bytes, chunks));
        // The receiver's refusal is the better explanation of a push that failed.
        let answer =
            answer.map_err(|_| Status::deadline_exceeded("the snapshot was not installed in time"))?;
        let answer = answer.map_err(|status| match sent {
            Err(own) if status.code() == Code::Cancelled => own,
            _ => status,
        })?;
        unblob(answer.get_ref())
    }
}

/// A file that is open: it can be read to its end, also when its name is gone.
pub(super) struct Outgoing {
    pub(super) blob: Arc<dyn Blob>,
    pub(super) offer: Offer,
    pub(super) seal: Bytes,
    pub(super) work: Work,
}

impl Outgoing {
    pub(super) async fn open(snapshots: &SnapshotStore, snapshot: Snapshot, vote: Vote) -> io::Result<Self> {
        let (last_log_id, file) = (snapshot.meta.last_log_id, snapshot.snapshot);
        let opened = snapshots.work().run(move || -> io::Result<_> {
            let blob = file.open()?;
            Ok((blob.size()?, file.seal()?, blob))
        });
        let (bytes, seal, blob) = opened.await??;
        Ok(Self { blob, offer: Offer { vote, last_log_id, bytes }, seal, work: snapshots.work().clone() })
    }

    fn meta(&self) -> Bytes {
        codec::encode(&self.offer).into()
    }

    /// Puts everything from an offset on into the queue.
    pub(super) async fn push(
        &self,
        from_bytes: u64,
        chunks: mpsc::Sender<SnapshotChunk>,
    ) -> Result<(), Status> {
        let mut offset = from_bytes;
        let (meta, seal) = (self.meta(), self.seal.clone());
        let mut next = SnapshotChunk { meta, seal, offset, ..SnapshotChunk::default() };
        loop {
            let slot = tokio::time::timeout(CHUNK_IDLE, chunks.reserve()).await;
            let slot = slot.map_err(|_| Status::deadline_exceeded("the receiver stopped taking chunks"))?;
            slot.map_err(|_| Status::cancelled("the receiver ended the transfer"))?.send(next);
            let data = self.read(offset).await?;
            if data.is_empty() {
                return Ok(());
            }
            let (crc32c, length) = (crc32c::crc32c(&data), data.len() as u64);
            next = SnapshotChunk { offset, data: data.into(), crc32c, ..SnapshotChunk::default() };
            offset += length;
        }
    }

    async fn read(&self, offset_bytes: u64) -> io::Result<Vec<u8>> {
        let blob = self.blob.clone();
        let read = self.work.run(move || {
            let mut data = vec![0; CHUNK_BYTES];
            let read = blob.read_at(offset_bytes, &mut data)?;
            data.truncate(read);
            Ok(data)
        });
        read.await?
    }
}

/// As long as every chunk arrives within its own deadline, the whole may take this long.
fn idle_total(bytes: u64) -> Duration {
    let chunks = u32::try_from(bytes / CHUNK_BYTES as u64 + 1).unwrap_or(u32::MAX);
    CHUNK_IDLE.saturating_mul(chunks)
}
