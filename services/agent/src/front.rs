//! What a client's request becomes: passed on, answered as a heartbeat, or refused.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tokio::sync::mpsc;
use tonic::Status;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::server::{Grpc, UnaryService};
use tower::Service;
use tripod_port::overlong::MESSAGE_BYTES_MAX;
use tripod_port::{Answer, Cut, Ending, Line, Shape, Stopping, UnderWay};
use tripod_proto::raw::RawCodec;
use tripod_proto::tensorflow as t;
use tripod_proto::xla::coordination as n;

use crate::beats::{Beat, Beats};
use crate::calls::{self, Call, Dialect, Kind};
use crate::deadline::Deadline;
use crate::forward::Forwarder;
use crate::job::AgentJob;
use crate::message::{Message, Reply};
use crate::meters::Meters;
use crate::raw::message_of;
use crate::registered::Registered;
use crate::upstream::Upstream;

/// gRPC's own text.
const DEADLINE_TEXT: &str = "Deadline Exceeded";
/// What polls hear when the agent stops, with the one code after which a client goes on without polling.
const RESTARTING_TEXT: &str = "agent is restarting";
/// What a call hears that could not be finished when the agent stops.
const UNKNOWN_TEXT: &str = "outcome unknown: the agent is stopping, and the cluster has not answered in time; look \
                            whether the call took effect before sending it again";

/// The service of all paths. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Front {
    pub(crate) upstream: Upstream,
    pub(crate) forwarder: Forwarder,
    pub(crate) beats: Beats,
    pub(crate) job: AgentJob,
    pub(crate) job_name: Arc<str>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) stopping: Stopping,
    /// Told of each life that registers, as long as somebody takes it.
    pub(crate) lives: mpsc::Sender<u64>,
}

impl Service<Request<Body>> for Front {
    type Response = Response<Answer<Body>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let front = self.clone();
        Box::pin(async move {
            let ending = calls::find(request.uri().path()).map_or(Ending::Once, |call| call.ending);
            let under_way = UnderWay::of(&request, ending, Shape::Unary);
            Ok(under_way.answered(&front.stopping, front.answer(request), cut).await)
        })
    }
}

impl Front {
    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let path = request.uri().path();
        let Some(call) = calls::find(path) else {
            return Status::unimplemented(format!(
                "an agent passes on the coordination services only, not {path}; ask a node of the cluster"
            ))
            .into_http();
        };
        let _counted = self.meters.call(call.kind);
        let deadline = Deadline::of(request.headers());
        let expired = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline.last_moment()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            response = self.serve(call, request, deadline) => response,
            () = expired => Status::deadline_exceeded(DEADLINE_TEXT).into_http(),
        }
    }

    async fn serve(&self, call: Call, request: Request<Body>, deadline: Option<Deadline>) -> Response<Body> {
        let settled = tokio::select! {
            biased;
            settled = self.job.settled() => settled,
            given_up = self.upstream.given_up() => Err(given_up),
            () = self.stopping.begun(), if call.kind == Kind::Poll => Err(Status::cancelled(RESTARTING_TEXT)),
        };
        let heartbeat_timeout = match settled {
            Ok(heartbeat_timeout) => heartbeat_timeout,
            Err(refusal) => return refusal.into_http(),
        };
        if call.kind == Kind::Heartbeat {
            // Clients of L wait for two minutes, however often they send heartbeats.
            if let Some(deadline) = deadline.filter(|_| call.dialect != Dialect::L) {
                self.beats.compare(deadline.given, heartbeat_timeout);
            }
            return self.heartbeat(call.dialect, request, deadline).await;
        }
        match self.pass_on(call, request, deadline).await {
            Ok(reply) => reply.into_response(),
            Err(status) => status.into_http(),
        }
    }

    async fn pass_on(
        &self,
        call: Call,
        request: Request<Body>,
        deadline: Option<Deadline>,
    ) -> Result<Reply, Status> {
        let line = request.extensions().get::<Line>().cloned();
        let mut message = Message::read(request, deadline).await?;
        if message.path == calls::INSERT_T
            && let Some(registration) = line.as_ref().and_then(|line| line.kept::<Registered>().get())
        {
            message.tell_registration(&registration);
        }
        let reply = tokio::select! {
            biased;
            reply = self.forwarder.call(&message, call.repeat) => reply?,
            () = self.stopping.begun(), if call.kind == Kind::Poll => self.release(&message).await?,
        };
        if call.kind == Kind::Register && reply.is_ok() {
            self.registered(call.dialect, &message, &reply, line).await;
        }
        Ok(reply)
    }

    /// A client may lose its cluster before its first heartbeat, and the cluster its client.
    async fn registered(&self, dialect: Dialect, message: &Message, reply: &Reply, line: Option<Line>) {
        let request = message_of(message.body.clone(), message.is_gzip()).await;
        let answer = message_of(reply.body.clone(), false).await;
        if let (Some(request), Some(answer)) = (request, answer) {
            self.beats.registered(dialect, &request, answer);
            match dialect {
                Dialect::N => {
                    if let Ok(n::RegisterTaskRequest { incarnation, .. }) =
                        prost::Message::decode(request.clone())
                    {
                        self.is_alive(incarnation);
                    }
                }
                Dialect::T => {
                    if let Ok(t::RegisterTaskRequest { incarnation, source_task: Some(task) }) =
                        prost::Message::decode(request.clone())
                    {
                        self.is_alive(incarnation);
                        let task = format!("{}/{}", task.job_name, task.task_id);
                        if let Some(line) = &line {
                            line.kept::<Registered>().note(task, request.clone());
                        }
                    }
                }
                Dialect::L | Dialect::Foreign => {}
            }
            if let (Some(line), Dialect::N | Dialect::T) = (line, dialect) {
                let registration = Beat { path: message.path.clone(), message: request };
                self.beats.follow(&self.job_name, registration, line, self.stopping.clone());
            }
        }
    }

    /// A life has registered. Of more than are taken, nobody is told.
    fn is_alive(&self, incarnation: u64) {
        let _ = self.lives.try_send(incarnation);
    }

    async fn heartbeat(
        &self,
        dialect: Dialect,
        request: Request<Body>,
        deadline: Option<Deadline>,
    ) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let given = deadline.map(|deadline| deadline.given);
        let heartbeat = Heartbeat { beats: self.beats.clone(), dialect, path, given };
        Grpc::new(RawCodec)
            .accept_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .unary(heartbeat, request)
            .await
    }

    /// The end of a poll whose agent stops.
    async fn release(&self, poll: &Message) -> Result<Reply, Status> {
        self.forwarder.release(poll).await.ok_or_else(|| Status::cancelled(RESTARTING_TEXT))
    }
}

/// What a call is told that a stop ends.
fn cut(cut: Cut) -> Response<Body> {
    let text = match cut {
        Cut::Elsewhere => RESTARTING_TEXT,
        Cut::Unknown => UNKNOWN_TEXT,
    };
    Status::unavailable(text).into_http()
}

/// One heartbeat call.
struct Heartbeat {
    beats: Beats,
    dialect: Dialect,
    path: String,
    given: Option<Duration>,
}

impl UnaryService<Bytes> for Heartbeat {
    type Response = Bytes;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<Bytes>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let (beats, dialect, given) = (self.beats.clone(), self.dialect, self.given);
        let beat = Beat { path: std::mem::take(&mut self.path), message: request.into_inner() };
        Box::pin(async move { beats.beat(dialect, beat, given).await.map(tonic::Response::new) })
    }
}
