//! openraft's requests, sent to one peer.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::{Stream, StreamExt};
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{Backoff, RPCOption, RaftNetworkFactory, RaftNetworkV2, stream_append_sequential};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendResult, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{OptionalSend, RPCTypes};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tonic::transport::Channel;
use tonic::{Response, Status, Streaming};
use tripod_proto::tripod::peer::v1::Blob;
use tripod_proto::tripod::peer::v1::raft_client::RaftClient;

use super::auth::Caller;
use super::calls::PeerCalls;
use super::channels::Class;
use super::send_gate::SendGate;
use super::window::Window;
use super::{AppendAnswer, MESSAGE_BYTES_MAX, blob, sanity, transfer};
use crate::base::codec;
use crate::base::types::{Peer, Types, Vote, entry_bytes};
use crate::snapshot::{Snapshot, SnapshotFile, SnapshotStore};

/// How long a stream of appends may take to open, connecting included.
const OPEN_DEADLINE: Duration = Duration::from_secs(1);
/// Between attempts to reach a peer that did not answer.
const BACKOFF: Duration = Duration::from_millis(100);
/// How long a follower may owe an answer to an append. Long enough for its disk; pings notice a dead
/// connection much earlier.
const ANSWER_IDLE: Duration = Duration::from_secs(10);

type RpcError = RPCError<Types>;

/// Makes clients for openraft.
#[derive(Debug, Clone)]
pub(crate) struct PeerClients {
    calls: PeerCalls,
    snapshots: SnapshotStore,
    send_gate: SendGate,
}

impl PeerClients {
    pub(crate) fn new(calls: PeerCalls, snapshots: SnapshotStore, send_gate: SendGate) -> Self {
        Self { calls, snapshots, send_gate }
    }

    fn client(&self, target: u64, peer: &Peer, class: Class) -> PeerClient {
        PeerClient {
            target,
            address: peer.address.clone(),
            class,
            caller: self.calls.caller(target),
            calls: self.calls.clone(),
            snapshots: self.snapshots.clone(),
            send_gate: self.send_gate.clone(),
            term: Arc::default(),
        }
    }
}

impl RaftNetworkFactory<Types> for PeerClients {
    type Network = PeerClient;

    async fn new_client(&mut self, target: u64, peer: &Peer) -> PeerClient {
        self.client(target, peer, Class::Log)
    }

    async fn new_heartbeat_client(&mut self, target: u64, peer: &Peer) -> PeerClient {
        self.client(target, peer, Class::Vote)
    }

    async fn new_snapshot_client(&mut self, target: u64, peer: &Peer) -> PeerClient {
        self.client(target, peer, Class::Snapshot)
    }
}

/// Sends to one peer.
#[derive(Debug)]
pub(crate) struct PeerClient {
    target: u64,
    address: String,
    /// What [`Self::stream_append`] and snapshots travel on; votes have their own class.
    class: Class,
    caller: Caller,
    calls: PeerCalls,
    /// Where the files are that are to be sent.
    snapshots: SnapshotStore,
    send_gate: SendGate,
    /// The term of what was sent last, by which answers are judged.
    term: Arc<AtomicU64>,
}

impl PeerClient {
    fn connection(&self, class: Class) -> Result<RaftClient<Channel>, Unreachable<Types>> {
        let channel = self.calls.lazy(self.target, &self.address, class);
        let channel = channel.map_err(Unreachable::from_string)?;
        Ok(RaftClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX))
    }

    /// One small question on the class of votes.
    async fn ask<Q, A, F>(
        &self,
        question: &Q,
        deadline: Duration,
        send: impl FnOnce(RaftClient<Channel>, tonic::Request<Blob>) -> F,
    ) -> Result<A, RpcError>
    where
        Q: Serialize,
        A: DeserializeOwned,
        F: Future<Output = Result<Response<Blob>, Status>>,
    {
        let connection = self.connection(Class::Vote)?;
        let call = send(connection, self.caller.request(blob(question)));
        let answer = match tokio::time::timeout(deadline, call).await {
            Ok(answer) => answer.map_err(|status| self.unreachable(&status))?,
            Err(_) => return Err(self.timeout(RPCTypes::Vote, deadline)),
        };
        codec::decode(&answer.get_ref().data).map_err(|error| Unreachable::new(&error).into())
    }

    /// Notes the term in which the peer is asked.
    fn asks(&self, vote: &Vote) {
        self.term.store(vote.leader_id.term, Ordering::Relaxed);
    }

    /// Gives an answer on unless the vote in it is nobody's.
    fn sane<A>(&self, answer: A, vote: Option<Vote>) -> Result<A, Unreachable<Types>> {
        let term = self.term.load(Ordering::Relaxed);
        let checked = vote.map_or(Ok(()), |vote| sanity::answered(&vote, term));
        checked.map_err(|problem| {
            tracing::warn!(
                target_node = self.target,
                address = self.address,
                problem,
                "peer answered nonsense"
            );
            Unreachable::from_string(format!("{}: {problem}", self.address))
        })?;
        Ok(answer)
    }

    /// Everything that goes wrong on the way is "unreachable": that is what makes openraft back off.
    fn unreachable(&self, status: &Status) -> Unreachable<Types> {
        if status.code() == tonic::Code::FailedPrecondition {
            tracing::warn!(
                target_node = self.target,
                address = self.address,
                reason = status.message(),
                "peer refused call"
            );
        }
        Unreachable::from_string(format!("{}: {}", self.address, status.message()))
    }

    /// What openraft is told instead of an answer while this node holds its messages back.
    fn held_back(&self) -> Unreachable<Types> {
        Unreachable::from_string(format!("{}: not called: this node cannot lead at the moment", self.address))
    }

    fn timeout(&self, action: RPCTypes, timeout: Duration) -> RpcError {
        Unreachable::from_string(format!("{}: {action} took longer than {timeout:?}", self.address)).into()
    }

    async fn open_stream<S>(&self, input: S) -> Result<(Streaming<Blob>, Arc<Window>), RpcError>
    where
        S: Stream<Item = AppendEntriesRequest<Types>> + OptionalSend + Unpin + 'static,
    {
        if !self.send_gate.passes_entries() {
            tokio::time::sleep(BACKOFF).await;
            return Err(self.held_back().into());
        }
        let window = Window::new();
        // One without entries only tells how far the log is committed. Whoever wrote what was committed last
        // is answered first.
        let requests = window.clone().gate(input, |request| request.entries.is_empty());
        let term = self.term.clone();
        let requests = requests.map(move |request| {
            term.store(request.vote.leader_id.term, Ordering::Relaxed);
            Blob { data: codec::encode_sized(&request, bytes(&request)).into() }
        });
        let requests = requests.take_until(self.send_gate.closed_for_entries());
        let mut connection = self.connection(self.class)?;
        let call = connection.stream_append(self.caller.request(requests));
        let failure = match tokio::time::timeout(OPEN_DEADLINE, call).await {
            Ok(Ok(opened)) => return Ok((opened.into_inner(), window)),
            Ok(Err(status)) => self.unreachable(&status).into(),
            Err(_) => self.timeout(RPCTypes::AppendEntries, OPEN_DEADLINE),
        };
        // openraft applies its back-off inside the request stream, which a transport that fails to
        // connect never polls: without a wait here a dead follower costs a whole core.
        tokio::time::sleep(BACKOFF).await;
        Err(failure)
    }

    /// The next answer, unless one is owed for too long.
    async fn next_answer(
        &self,
        answers: &mut Streaming<Blob>,
        window: &Window,
    ) -> Option<Result<StreamAppendResult<Types>, RpcError>> {
        loop {
            let answer = match tokio::time::timeout(ANSWER_IDLE, answers.message()).await {
                Ok(answer) => answer,
                Err(_) if window.owed() == 0 => continue,
                Err(_) => return Some(Err(self.timeout(RPCTypes::AppendEntries, ANSWER_IDLE))),
            };
            return match answer {
                Ok(None) => None,
                Ok(Some(blob)) => {
                    window.answered();
                    let answer = codec::decode::<AppendAnswer>(&blob.data);
                    let answer = answer.map_err(|error| Unreachable::new(&error)).and_then(|answer| {
                        let vote =
                            if let AppendAnswer::HigherVote(vote) = &answer { Some(*vote) } else { None };
                        self.sane(answer, vote)
                    });
                    Some(answer.map(Into::into).map_err(Into::into))
                }
                Err(status) => Some(Err(self.unreachable(&status).into())),
            };
        }
    }
}

/// About how many bytes a message becomes.
fn bytes(request: &AppendEntriesRequest<Types>) -> usize {
    request.entries.iter().map(entry_bytes).sum::<usize>() + 64
}

impl RaftNetworkV2<Types> for PeerClient {
    type SnapshotData = SnapshotFile;

    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RpcError> {
        if !self.send_gate.passes_heartbeats() {
            return Err(self.held_back().into());
        }
        let send = |mut client: RaftClient<Channel>, message| async move { client.append(message).await };
        self.asks(&request.vote);
        let answer: AppendEntriesResponse<Types> = self.ask(&request, option.hard_ttl(), send).await?;
        let vote = if let AppendEntriesResponse::HigherVote(vote) = &answer { Some(*vote) } else { None };
        Ok(self.sane(answer, vote)?)
    }

    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        option: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, Result<StreamAppendResult<Types>, RpcError>>, RpcError>>
    where
        S: Stream<Item = AppendEntriesRequest<Types>> + OptionalSend + Unpin + 'static,
    {
        if self.class == Class::Vote {
            // A heartbeat is one request with one answer; a stream would cost it a second round trip.
            return stream_append_sequential(self, input, option);
        }
        Box::pin(async move {
            let (answers, window) = self.open_stream(input).await?;
            let client = &*self;
            let stream = futures::stream::unfold(Some((answers, window)), move |state| async move {
                let (mut answers, window) = state?;
                let answer = client.next_answer(&mut answers, &window).await?;
                let next = answer.is_ok().then_some((answers, window));
                Some((answer, next))
            });
            Ok(Box::pin(stream) as BoxStream<'s, _>)
        })
    }

    async fn vote(
        &mut self,
        request: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RpcError> {
        let send = |mut client: RaftClient<Channel>, message| async move { client.vote(message).await };
        self.asks(&request.vote);
        let answer: VoteResponse<Types> = self.ask(&request, option.soft_ttl(), send).await?;
        let vote = answer.vote;
        Ok(self.sane(answer, Some(vote))?)
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RpcError> {
        let send = |mut client: RaftClient<Channel>, message| async move { client.pre_vote(message).await };
        self.asks(&request.vote);
        let answer: VoteResponse<Types> = self.ask(&request, option.soft_ttl(), send).await?;
        let vote = answer.vote;
        Ok(self.sane(answer, Some(vote))?)
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<Types>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, RpcError> {
        let send =
            |mut client: RaftClient<Channel>, message| async move { client.transfer_leader(message).await };
        self.ask(&request, option.soft_ttl(), send).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        if !self.send_gate.passes_entries() {
            return Err(self.held_back().into());
        }
        let connection = self.connection(Class::Snapshot)?;
        self.asks(&vote);
        let sent = transfer::send(connection, &self.caller, vote, snapshot, &self.snapshots);
        tokio::select! {
            biased;
            closed = cancel => Err(closed.into()),
            // What has arrived is kept there.
            () = self.send_gate.closed_for_entries() => Err(self.held_back().into()),
            sent = sent => match sent {
                Ok(vote) => {
                    self.snapshots.tally().sent();
                    Ok(SnapshotResponse::new(self.sane(vote, Some(vote))?))
                }
                Err(status) => Err(self.unreachable(&status).into()),
            },
        }
    }

    fn backoff(&self) -> Option<Backoff> {
        Some(Backoff::new(std::iter::repeat(BACKOFF)))
    }
}
