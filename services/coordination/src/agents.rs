//! `tripod.v1.Agents`: what node-local agents ask besides their clients' own calls.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, async_trait};
use tripod_gateway::{Consistency, Gateway, JobBinding};
use tripod_port::Stopping;
use tripod_proto::metadata;
use tripod_proto::tripod::v1 as pb;
use tripod_proto::tripod::v1::agents_server::Agents;
use tripod_state::ids::NodeId;
use tripod_state::job::DEFAULT_JOB;
use tripod_state::limits::TIMEOUT_MS_MAX;
use tripod_state::{State, Topic, member};

use crate::dialect::Dialect;
use crate::front::{Front, Outcome};
use crate::{beat_sets, l, n, own_task, t};

/// Verdicts that may wait for a slow agent.
const VERDICTS_WAITING: usize = 64;
/// Beats of one message: an agent has one client for each accelerator of its host, not thousands.
const BEATS_MAX: usize = 16_384;

pub(crate) const HEARTBEAT_N: &str = "/xla.coordination.CoordinationService/Heartbeat";
pub(crate) const HEARTBEAT_T: &str = "/tensorflow.CoordinationService/Heartbeat";
pub(crate) const HEARTBEAT_L: &str = "/xla.DistributedRuntimeService/Heartbeat";
const REGISTER_N: &str = "/xla.coordination.CoordinationService/RegisterTask";
const REGISTER_T: &str = "/tensorflow.CoordinationService/RegisterTask";

type Verdicts = Pin<Box<dyn Stream<Item = Result<pb::BeatVerdict, Status>> + Send>>;
type Members = Pin<Box<dyn Stream<Item = Result<pb::MembersResponse, Status>> + Send>>;

/// Answers agents.
pub(crate) struct Service {
    gateway: Gateway,
}

/// The dialects' own services, for the job of one message.
pub(crate) struct Dialects {
    pub(crate) n: n::Service,
    pub(crate) t: t::Service,
    pub(crate) l: l::Service,
}

impl Service {
    pub(crate) fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }
}

#[async_trait]
impl Agents for Service {
    type BeatStream = Verdicts;
    type WatchMembersStream = Members;

    async fn beat(&self, request: Request<pb::BeatRequest>) -> Result<Response<Verdicts>, Status> {
        about_own_job(&request)?;
        let pb::BeatRequest { job, beats, set } = request.into_inner();
        if beats.len() > BEATS_MAX {
            return Err(Status::resource_exhausted(format!(
                "{} heartbeats in one message, at most {BEATS_MAX}",
                beats.len()
            )));
        }
        let job = if job.is_empty() { DEFAULT_JOB.to_owned() } else { job };
        let dialects = Arc::new(Dialects::new(&self.gateway, &job));
        let (told, verdicts) = mpsc::channel(VERDICTS_WAITING);
        if let Some(set) = set {
            let (gateway, dialects, told) = (self.gateway.clone(), Arc::clone(&dialects), told.clone());
            tokio::spawn(async move {
                tokio::select! {
                    word = beat_sets::word(&gateway, &dialects, set) => {
                        let _ = told.send(Ok(pb::BeatVerdict { set: word.into(), ..Default::default() })).await;
                    }
                    () = told.closed() => {}
                }
            });
        }
        for (place, beat) in beats.into_iter().enumerate() {
            let (dialects, told) = (Arc::clone(&dialects), told.clone());
            tokio::spawn(async move {
                // An agent that went away needs no verdict, and its beats need not be held any longer.
                tokio::select! {
                    verdict = dialects.judge(beat) => {
                        let beat = u32::try_from(place).expect("bounded above");
                        let _ = told.send(Ok(pb::BeatVerdict { beat, ..verdict })).await;
                    }
                    () = told.closed() => {}
                }
            });
        }
        Ok(Response::new(Box::pin(ReceiverStream::new(verdicts))))
    }

    async fn watch_members(
        &self,
        request: Request<pb::WatchMembersRequest>,
    ) -> Result<Response<Members>, Status> {
        let stopping = Stopping::of(&request);
        let gateway = self.gateway.clone();
        let (told, members) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut changes = gateway.watch(Topic::Members);
            let mut stops = false;
            loop {
                // Whoever listens wants to know where to go even when nobody leads.
                let Ok(known) = gateway.read(Consistency::Local, State::serving_members).await else {
                    return;
                };
                let members = known.into_iter().map(address).collect();
                let now = pb::MembersResponse { members, stopping: stops };
                if told.send(Ok(now)).await.is_err() || stops {
                    return;
                }
                tokio::select! {
                    () = changes.changed() => {}
                    () = stopping.begun() => stops = true,
                    () = told.closed() => return,
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(members))))
    }
}

/// The heartbeats are of tasks of the caller's job.
fn about_own_job(request: &Request<pb::BeatRequest>) -> Result<(), Status> {
    let job = request.get_ref().job.as_str();
    own_task::check_job(request.extensions(), if job.is_empty() { DEFAULT_JOB } else { job })
}

impl Dialects {
    fn new(gateway: &Gateway, job: &str) -> Self {
        let front = |dialect| Front::new(gateway.clone(), JobBinding::Named(job.to_owned()), dialect);
        Self {
            n: n::Service::new(front(Dialect::N)),
            t: t::Service::new(front(Dialect::T)),
            l: l::Service::new(front(Dialect::L)),
        }
    }

    /// The answer that the beat's client would have had here.
    async fn judge(&self, beat: pb::ClientBeat) -> pb::BeatVerdict {
        if let Some(pb::Presence { connection, gone }) = beat.presence {
            return self.presence(&beat.path, beat.message, (connection, gone)).await;
        }
        let deadline_ms = beat.deadline_ms;
        match beat.path.as_str() {
            HEARTBEAT_N => judged(beat.message, deadline_ms, |request| self.n.beat(request)).await,
            HEARTBEAT_T => judged(beat.message, deadline_ms, |request| self.t.beat(request)).await,
            HEARTBEAT_L => judged(beat.message, deadline_ms, |request| self.l.beat(request)).await,
            path => refused(&Status::unimplemented(format!("{path} is no heartbeat"))),
        }
    }

    /// Passes on what an agent knows of a task that has sent no heartbeat yet. OK: it is to be told again.
    async fn presence(&self, path: &str, message: Bytes, sign: (u64, bool)) -> pb::BeatVerdict {
        let told = match path {
            REGISTER_N => match decoded(message) {
                Ok(request) => self.n.tell(request, sign).await,
                Err(status) => Err(status),
            },
            REGISTER_T => match decoded(message) {
                Ok(request) => self.t.tell(request, sign).await,
                Err(status) => Err(status),
            },
            path => Err(Status::unimplemented(format!("{path} is no registration"))),
        };
        match told {
            Ok(true) => pb::BeatVerdict::default(),
            Ok(false) => refused(&Status::failed_precondition("it is heartbeats that count from now on")),
            Err(status) => refused(&status),
        }
    }
}

fn address((node, addresses): (NodeId, member::Addresses)) -> pb::MemberAddress {
    pb::MemberAddress { node_id: node.0, client_address: addresses.client }
}

fn decoded<M: Message + Default>(message: Bytes) -> Result<Request<M>, Status> {
    let decoded = M::decode(message).map(Request::new);
    decoded.map_err(|error| Status::internal(format!("not a client's message: {error}")))
}

/// A client's heartbeat as it would have come from the client.
pub(crate) fn heartbeat<M: Message + Default>(
    message: Bytes,
    deadline_ms: u64,
) -> Result<Request<M>, Status> {
    let mut request = decoded(message)?;
    if deadline_ms > 0 {
        // What is no time any more would be none that can be written.
        request.set_timeout(Duration::from_millis(deadline_ms.min(TIMEOUT_MS_MAX)));
    }
    Ok(request)
}

async fn judged<M, R, F>(
    message: Bytes,
    deadline_ms: u64,
    call: impl FnOnce(Request<M>) -> F,
) -> pb::BeatVerdict
where
    M: Message + Default,
    R: Message,
    F: Future<Output = Outcome<R>>,
{
    let request = match heartbeat(message, deadline_ms) {
        Ok(request) => request,
        Err(status) => return refused(&status),
    };
    match call(request).await {
        Ok(reply) => {
            pb::BeatVerdict { message: reply.into_inner().encode_to_vec().into(), ..Default::default() }
        }
        Err(status) => refused(&status),
    }
}

fn refused(status: &Status) -> pb::BeatVerdict {
    let outage = status.metadata().get(metadata::OUTAGE).and_then(|word| word.to_str().ok());
    pb::BeatVerdict {
        beat: 0,
        code: status.code().into(),
        text: status.message().to_owned(),
        details: Bytes::copy_from_slice(status.details()),
        message: Bytes::new(),
        outage: outage.unwrap_or_default().to_owned(),
        set: pb::SetWord::None.into(),
    }
}
