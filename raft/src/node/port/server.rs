//! Answers peers' Raft messages, and runs the port.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use openraft::base::BoxStream;
use openraft::raft::AppendEntriesRequest;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};
use tripod_gate::{Caller, GateLayer};
use tripod_proto::tripod::peer::v1::leader_server::LeaderServer;
use tripod_proto::tripod::peer::v1::raft_server::{Raft as RaftApi, RaftServer};
use tripod_proto::tripod::peer::v1::{
    AcknowledgedRequest, AcknowledgedResponse, Blob, LevelAnswer, LevelQuestion, SnapshotChunk, SnapshotHeld,
    SnapshotOffer, SuspectRequest, SuspectResponse,
};

use super::leader_service::LeaderService;
use super::sanity::Sanity;
use crate::apply::engine::Raft;
use crate::apply::hooks::AskHandler;
use crate::base::codec;
use crate::base::error::StartError;
use crate::base::types::{Types, Vote};
use crate::care::level::Own;
use crate::care::rejoin::{Question, Respondent};
use crate::lead::leader_signs::LeaderSigns;
use crate::lead::suspicion::Suspicion;
use crate::log::LogStore;
use crate::peers::arrivals::arrivals;
use crate::peers::auth::Guard;
use crate::peers::gate::Gate;
use crate::peers::proof::PeerConnection;
use crate::peers::transfer::{self, Offer, Received};
use crate::peers::wiring::{PeerListener, Wires, incoming};
use crate::peers::{AppendAnswer, MESSAGE_BYTES_MAX, blob, unblob};
use crate::snapshot::SnapshotStore;

const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// After this long without a sign of life a connection is dropped.
const PING_INTERVAL: Duration = Duration::from_secs(1);
const PING_TIMEOUT: Duration = Duration::from_secs(4);

/// Binds the peer port.
pub(crate) async fn bind(wires: &Wires, address: &str) -> Result<PeerListener, StartError> {
    wires.listen(address).await.map_err(|error| {
        StartError::Network(match error.kind() {
            std::io::ErrorKind::AddrInUse => format!(
                "T4204 peer-port: the peer address {address} is in use by another process; stop it, or choose \
                 another address for this node"
            ),
            _ => format!(
                "T4204 peer-port: cannot listen on the peer address {address}: {error}; it must be HOST:PORT of \
                 this machine"
            ),
        })
    })
}

/// Serves peers until it is told to stop.
pub(crate) fn serve(
    listener: PeerListener,
    guard: &Guard,
    who_may_call: Arc<tripod_gate::Gate>,
    raft: RaftService,
    leader: LeaderService,
    stop: CancellationToken,
) -> JoinHandle<()> {
    let raft = RaftServer::new(raft)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let leader = LeaderServer::new(leader)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let gate = GateLayer::new(who_may_call, None, Caller::Legacy).seen_by(PeerConnection::caller);
    let router = Server::builder()
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_keepalive_interval(Some(PING_INTERVAL))
        .http2_keepalive_timeout(Some(PING_TIMEOUT))
        .layer(gate)
        .add_service(InterceptedService::new(raft, guard.clone()))
        .add_service(InterceptedService::new(leader, guard.clone()));
    tokio::spawn(async move {
        let served = match listener {
            PeerListener::Tcp(listener, tls) => {
                router.serve_with_incoming_shutdown(arrivals(listener, tls), stop.cancelled_owned()).await
            }
            PeerListener::Brought(listener) => {
                router.serve_with_incoming_shutdown(incoming(listener), stop.cancelled_owned()).await
            }
        };
        if let Err(error) = served {
            tracing::error!(%error, "peer transport ended");
        }
    })
}

/// Feeds peers' messages to openraft.
pub(crate) struct RaftService {
    pub(crate) raft: Raft,
    pub(crate) snapshots: SnapshotStore,
    pub(crate) cluster_id: String,
    pub(crate) heard: LeaderSigns,
    pub(crate) sanity: Sanity,
    /// Told when the node stops. Peers keep streams open that would never end by themselves.
    pub(crate) stop: CancellationToken,
    pub(crate) gate: Gate,
    pub(crate) own: Own,
    pub(crate) respondent: Respondent,
    pub(crate) log: LogStore,
    pub(crate) suspicion: Suspicion,
    pub(crate) asks: Arc<dyn AskHandler>,
}

impl RaftService {
    /// Resolves when the node stops.
    fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        self.stop.clone().cancelled_owned()
    }

    /// Checks what is offered.
    fn offers(&self) -> impl Fn(&Offer) -> Result<(), Status> + '_ {
        |offer| self.sanity.snapshot(&offer.vote, offer.last_log_id.as_ref())
    }

    /// Receives a file and installs it; openraft may find it older than what is here and ignore it.
    async fn receive(&self, chunks: &mut Streaming<SnapshotChunk>) -> Result<Blob, Status> {
        let Received { offer, snapshot, part, turn } =
            transfer::receive(chunks, &self.snapshots, &self.cluster_id, self.offers()).await?;
        let raft = self.raft.clone();
        // In a task of its own: a sender that goes away drops this call, and with it the file, while
        // the state machine may be about to read it.
        let installed = tokio::spawn(async move {
            let answer = raft.install_full_snapshot(offer.vote, snapshot).await;
            drop((part, turn));
            answer
        });
        let answer = installed.await.map_err(|error| Status::internal(error.to_string()))?;
        Ok(blob(&answer.map_err(stopped)?.vote))
    }
}

fn stopped(error: impl std::fmt::Display) -> Status {
    Status::unavailable(format!("this node is stopping: {error}"))
}

#[tonic::async_trait]
impl RaftApi for RaftService {
    async fn append(&self, request: Request<Blob>) -> Result<Response<Blob>, Status> {
        // Heartbeats travel beside the stream of entries. What one finds missing could be told late, when
        // the stream has brought it, and would look like data that was lost once more.
        self.gate.check_votes()?;
        let message: AppendEntriesRequest<Types> = unblob(request.get_ref())?;
        self.sanity.append(&message)?;
        self.heard.note(&message.vote);
        let answer = self.raft.append_entries(message).await.map_err(stopped)?;
        Ok(Response::new(blob(&answer)))
    }

    type StreamAppendStream = BoxStream<'static, Result<Blob, Status>>;

    async fn stream_append(
        &self,
        request: Request<Streaming<Blob>>,
    ) -> Result<Response<Self::StreamAppendStream>, Status> {
        self.gate.check_entries()?;
        let (mut stream, sanity) = (self.heard.stream(), self.sanity.clone());
        // A message that cannot be read ends the stream: skipping it would leave a gap.
        let read = move |message: Result<Blob, Status>| {
            let blob = message.inspect_err(|status| tracing::debug!(%status, "append stream ended")).ok()?;
            let message = codec::decode::<AppendEntriesRequest<Types>>(&blob.data)
                .inspect_err(|error| tracing::warn!(%error, "append refused"))
                .ok()?;
            sanity.append(&message).ok()?;
            Some(message)
        };
        let messages = request.into_inner().map(move |message| {
            let message = read(message);
            match &message {
                Some(message) => stream.note(&message.vote),
                None => stream.end(),
            }
            message
        });
        let messages = messages.take_while(|message| futures::future::ready(message.is_some()));
        // A leader that has nothing to append is silent, and its stream would outlast the engine.
        let messages = messages.filter_map(futures::future::ready).take_until(self.stopping());
        let answers = self.raft.stream_append(Box::pin(messages));
        let answers = answers.map(|answer| match answer {
            Ok(answer) => Ok(blob(&AppendAnswer::from(answer))),
            Err(fatal) => Err(stopped(fatal)),
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn vote(&self, request: Request<Blob>) -> Result<Response<Blob>, Status> {
        self.gate.check_votes()?;
        let message = unblob(request.get_ref())?;
        self.sanity.vote_request(&message)?;
        let answer = self.raft.vote(message).await.map_err(stopped)?;
        Ok(Response::new(blob(&answer)))
    }

    async fn pre_vote(&self, request: Request<Blob>) -> Result<Response<Blob>, Status> {
        self.gate.check_votes()?;
        let message = unblob(request.get_ref())?;
        self.sanity.vote_request(&message)?;
        let answer = self.raft.pre_vote(message).await.map_err(stopped)?;
        Ok(Response::new(blob(&answer)))
    }

    async fn held_vote(&self, _: Request<Blob>) -> Result<Response<Blob>, Status> {
        // Of what was lost nobody knows whether it was a later vote.
        self.gate.check_votes()?;
        Ok(Response::new(blob(&self.log.told_vote().unwrap_or_else(|| Vote::new(0, 0)))))
    }

    async fn transfer_leader(&self, request: Request<Blob>) -> Result<Response<Blob>, Status> {
        self.gate.check_votes()?;
        let message = unblob(request.get_ref())?;
        self.sanity.transfer(&message)?;
        let answer = self.raft.handle_transfer_leader(message).await.map_err(stopped)?;
        Ok(Response::new(blob(&answer)))
    }

    async fn install_snapshot(
        &self,
        request: Request<Streaming<SnapshotChunk>>,
    ) -> Result<Response<Blob>, Status> {
        self.gate.check_entries()?;
        let mut chunks = request.into_inner();
        tokio::select! {
            received = self.receive(&mut chunks) => received.map(Response::new),
            () = self.stopping() => Err(stopped("it takes no snapshot any more")),
        }
    }

    async fn held_snapshot(&self, request: Request<SnapshotOffer>) -> Result<Response<SnapshotHeld>, Status> {
        self.gate.check_entries()?;
        tokio::select! {
            held = transfer::held(request.get_ref(), &self.snapshots, self.offers()) => {
                held.map(|bytes| Response::new(SnapshotHeld { bytes }))
            }
            () = self.stopping() => Err(stopped("it takes no snapshot any more")),
        }
    }

    async fn acknowledged(
        &self,
        request: Request<AcknowledgedRequest>,
    ) -> Result<Response<AcknowledgedResponse>, Status> {
        let index = self.respondent.acknowledged.by(request.get_ref().node);
        Ok(Response::new(AcknowledgedResponse { index }))
    }

    async fn suspect(&self, request: Request<SuspectRequest>) -> Result<Response<SuspectResponse>, Status> {
        // Whoever may have lost its data does not say that somebody is to be elected.
        self.gate.check_votes()?;
        tokio::select! {
            answer = self.suspicion.answer(request.get_ref()) => answer.map(Response::new),
            () = self.stopping() => Err(stopped("it suspects nobody any more")),
        }
    }

    async fn level(&self, _: Request<LevelQuestion>) -> Result<Response<LevelAnswer>, Status> {
        self.own.answer().map(Response::new)
    }

    async fn ask_node(&self, request: Request<Blob>) -> Result<Response<Blob>, Status> {
        match self.asks.ask_here(request.into_inner().data).await {
            Ok(data) => Ok(Response::new(Blob { data })),
            Err(reason) => Err(Status::failed_precondition(reason)),
        }
    }

    async fn standing(&self, request: Request<Blob>) -> Result<Response<Blob>, Status> {
        let question: Question = unblob(request.get_ref())?;
        let standing = self.respondent.answer(&question).await.map_err(stopped)?;
        Ok(Response::new(blob(&standing)))
    }
}
