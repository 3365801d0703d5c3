//! A sender with a follower at the other end of a real connection: one that loses it, and one that runs an
//! older build.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::Stream;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Streaming};
use tripod_proto::tripod::peer::v1::raft_client::RaftClient;
use tripod_proto::tripod::peer::v1::raft_server::{Raft as RaftApi, RaftServer};
use tripod_proto::tripod::peer::v1::{
    AcknowledgedRequest, AcknowledgedResponse, Blob, LevelAnswer, LevelQuestion, SnapshotHeld,
    SuspectRequest, SuspectResponse,
};

use super::*;
use crate::peers::auth::Caller;
use crate::peers::blob;

type Answers = Pin<Box<dyn Stream<Item = Result<Blob, Status>> + Send>>;

/// Receives snapshots and does nothing else.
#[derive(Clone)]
struct Follower {
    snapshots: SnapshotStore,
    /// Its build knows how to resume.
    is_new: bool,
    /// So many transfers break behind two chunks.
    breaks: Arc<AtomicUsize>,
    /// Where each transfer began, and how many bytes it brought.
    transfers: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl Follower {
    fn new(directory: &TempDir, is_new: bool, breaks: usize) -> Self {
        let snapshots = store(directory, "receiver");
        let breaks = Arc::new(AtomicUsize::new(breaks));
        Self { snapshots, is_new, breaks, transfers: Arc::default() }
    }

    async fn serve(&self) -> RaftClient<tonic::transport::Channel> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Server::builder().add_service(RaftServer::new(self.clone()));
        tokio::spawn(served.serve_with_incoming(TcpIncoming::from(listener)));
        RaftClient::new(Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy())
    }

    /// Notes a chunk; what an older build does not know of it, it does not see.
    fn note(&self, mut chunk: SnapshotChunk) -> SnapshotChunk {
        let mut transfers = self.transfers.lock();
        if chunk.meta.is_empty() {
            transfers.last_mut().unwrap().1 += chunk.data.len() as u64;
        } else {
            transfers.push((chunk.offset, 0));
        }
        if !self.is_new {
            chunk.seal = Bytes::new();
        }
        chunk
    }
}

fn nothing_else<T>() -> Result<Response<T>, Status> {
    Err(Status::internal("this follower takes snapshots only"))
}

#[tonic::async_trait]
impl RaftApi for Follower {
    async fn append(&self, _: Request<Blob>) -> Result<Response<Blob>, Status> {
        nothing_else()
    }

    type StreamAppendStream = Answers;

    async fn stream_append(&self, _: Request<Streaming<Blob>>) -> Result<Response<Answers>, Status> {
        nothing_else()
    }

    async fn vote(&self, _: Request<Blob>) -> Result<Response<Blob>, Status> {
        nothing_else()
    }

    async fn pre_vote(&self, _: Request<Blob>) -> Result<Response<Blob>, Status> {
        nothing_else()
    }

    async fn transfer_leader(&self, _: Request<Blob>) -> Result<Response<Blob>, Status> {
        nothing_else()
    }

    async fn acknowledged(
        &self,
        _: Request<AcknowledgedRequest>,
    ) -> Result<Response<AcknowledgedResponse>, Status> {
        nothing_else()
    }

    async fn standing(&self, _: Request<Blob>) -> Result<Response<Blob>, Status> {
        nothing_else()
    }

    async fn ask_node(&self, _: Request<Blob>) -> Result<Response<Blob>, Status> {
        nothing_else()
    }

    async fn level(&self, _: Request<LevelQuestion>) -> Result<Response<LevelAnswer>, Status> {
        nothing_else()
    }

    async fn suspect(&self, _: Request<SuspectRequest>) -> Result<Response<SuspectResponse>, Status> {
        nothing_else()
    }

    async fn held_vote(&self, _: Request<Blob>) -> Result<Response<Blob>, Status> {
        nothing_else()
    }

    async fn install_snapshot(
        &self,
        request: Request<Streaming<SnapshotChunk>>,
    ) -> Result<Response<Blob>, Status> {
        let breaks = self.breaks.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        let upto = if breaks.is_ok() { 3 } else { usize::MAX };
        let broken = futures::stream::once(std::future::ready(Err(Status::unavailable("the line broke"))));
        let broken = broken.take(usize::from(breaks.is_ok()));
        let chunks = request.into_inner().take(upto).chain(broken);
        let mut chunks = Box::pin(chunks.map(|chunk| chunk.map(|chunk| self.note(chunk))));
        let received = receive(&mut chunks, &self.snapshots, CLUSTER, anybody).await?;
        Ok(Response::new(blob(&received.offer.vote)))
    }

    async fn held_snapshot(&self, request: Request<SnapshotOffer>) -> Result<Response<SnapshotHeld>, Status> {
        if !self.is_new {
            // What a server says to a call that it does not know.
            return Err(Status::unimplemented(""));
        }
        let bytes = held(request.get_ref(), &self.snapshots, anybody).await?;
        Ok(Response::new(SnapshotHeld { bytes }))
    }
}

async fn send_three_mebibytes(follower: &Follower) -> Result<Vote, Status> {
    let directory = TempDir::new().unwrap();
    let snapshots = store(&directory, "sender");
    let snapshot = snapshot_of(&snapshots, &state(3), 9);
    let caller = Caller::new(CLUSTER, 2).unwrap();
    send(follower.serve().await, &caller, Vote::new_committed(1, 1), snapshot, &snapshots).await
}

#[tokio::test]
async fn a_sender_goes_on_behind_what_arrived() {
    let directory = TempDir::new().unwrap();
    let follower = Follower::new(&directory, true, 1);
    let vote = send_three_mebibytes(&follower).await.unwrap();
    assert_eq!(vote, Vote::new_committed(1, 1));
    let transfers = follower.transfers.lock().clone();
    let here = 2 * CHUNK_BYTES as u64;
    assert_eq!(transfers[0], (0, here));
    assert_eq!(transfers[1].0, here);
    assert_eq!(transfers.len(), 2, "{transfers:?}");
    assert!(transfers[1].1 < 2 * CHUNK_BYTES as u64, "{transfers:?}");
}

#[tokio::test]
async fn a_follower_of_an_older_build_is_sent_the_whole_file_each_time() {
    let directory = TempDir::new().unwrap();
    let follower = Follower::new(&directory, false, 1);
    let refused = send_three_mebibytes(&follower).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "openraft tries again, not this call: {refused}");
    send_three_mebibytes(&follower).await.unwrap();
    let transfers = follower.transfers.lock().clone();
    assert_eq!(transfers.iter().map(|transfer| transfer.0).collect::<Vec<_>>(), [0, 0]);
    assert!(transfers[1].1 > 3 * CHUNK_BYTES as u64, "{transfers:?}");
}

#[tokio::test]
async fn a_follower_that_always_breaks_off_gets_the_file_piece_by_piece() {
    let directory = TempDir::new().unwrap();
    let follower = Follower::new(&directory, true, usize::MAX);
    let refused = send_three_mebibytes(&follower).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    let transfers = follower.transfers.lock().clone();
    let brought: u64 = transfers.iter().map(|transfer| transfer.1).sum();
    assert!(brought < 4 * CHUNK_BYTES as u64, "every byte once: {transfers:?}");
}
