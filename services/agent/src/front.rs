//! What a client's request becomes: passed on, answered as a heartbeat, or refused.

use std::convert::Infallible;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use tokio::sync::mpsc;
use tonic::Status;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::server::{Grpc, UnaryService};
use tower::Service;
use tripod_port::overlong::MESSAGE_BYTES_MAX;
use tripod_port::{
    Answer, CallBytes, CallerConnection, ConnectionCalls, Content, Cut, Ending, MethodKind, REFUSAL_BYTES,
    Received, Short, Stopping, UnderWay, enter_call,
};
use tripod_proto::raw::RawCodec;
use tripod_proto::tensorflow as t;
use tripod_proto::xla::coordination as n;

use crate::answer_bytes::{AnswerBytes, refusal};
use crate::beats::{Beat, Beats};
use crate::calls::{self, Call, Dialect, Kind};
use crate::deadline::Deadline;
use crate::devices::{Asking, Devices};
use crate::forward::Forwarder;
use crate::job::AgentJob;
use crate::message::{Message, Reply, remove_ours};
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
    pub(crate) devices: Arc<Devices>,
    pub(crate) job: AgentJob,
    pub(crate) job_name: Arc<str>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) stopping: Stopping,
    /// Told of each life that registers, as long as somebody takes it.
    pub(crate) lives: mpsc::Sender<u64>,
    /// What is told of a client that registers: where it comes from. `None`: nobody has said that.
    pub(crate) origin: Option<HeaderValue>,
}

impl Service<Request<Body>> for Front {
    type Response = Response<Answer<Content<Body>>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let front = self.clone();
        let known = calls::find(request.uri().path());
        let ending = known.map_or(Ending::Once, |call| call.ending);
        let under_way = UnderWay::of(&request, ending, MethodKind::Unary);
        let is_beat = known.is_some_and(|call| call.kind == Kind::Heartbeat);
        let bytes = match enter_call(under_way.account(), &request, is_beat) {
            Ok(bytes) => bytes,
            Err(short) => return Box::pin(refused(under_way, front.stopping, short)),
        };
        let caller = Caller { connection: under_way.connection(), bytes };
        let request = Received::of_bytes(request, &caller.bytes).map(Body::new);
        Box::pin(async move {
            let bytes = caller.bytes.clone();
            let answer = front.answer(request, &caller);
            Ok(under_way.answered(&front.stopping, answer, bytes, cut).await)
        })
    }
}

/// Who makes a call.
struct Caller {
    connection: CallerConnection,
    /// What counts the bytes of the call.
    bytes: CallBytes,
}

impl Front {
    async fn answer(&self, request: Request<Body>, caller: &Caller) -> Response<Body> {
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
            response = self.serve(call, request, caller, deadline) => response,
            () = expired => Status::deadline_exceeded(DEADLINE_TEXT).into_http(),
        }
    }

    async fn serve(
        &self,
        call: Call,
        request: Request<Body>,
        caller: &Caller,
        deadline: Option<Deadline>,
    ) -> Response<Body> {
        if call.kind == Kind::Heartbeat {
            return self.heartbeat(call.dialect, request, caller, deadline).await;
        }
        match self.pass_on(call, request, caller, deadline).await {
            Ok(reply) => reply.into_response(),
            Err(status) => status.into_http(),
        }
    }

    /// Waits until it is known whether there is a job, and gives its heartbeat timeout.
    async fn settled(&self, kind: Kind) -> Result<Duration, Status> {
        tokio::select! {
            biased;
            settled = self.job.settled() => settled,
            given_up = self.upstream.given_up() => Err(given_up),
            () = self.stopping.begun(), if kind == Kind::Poll => Err(Status::cancelled(RESTARTING_TEXT)),
        }
    }

    async fn pass_on(
        &self,
        call: Call,
        request: Request<Body>,
        caller: &Caller,
        deadline: Option<Deadline>,
    ) -> Result<Reply, Status> {
        let connection_calls = request.extensions().get::<ConnectionCalls>().cloned();
        // Before anything is waited for: what is not read is counted nowhere.
        let mut message = Message::read(request, deadline, &caller.bytes)
            .await
            .map_err(|status| if call.kind == Kind::Poll { harmless_to_polls(&status) } else { status })?;
        self.settled(call.kind).await?;
        if message.path == calls::INSERT_T
            && let Some(registration) = connection_calls
                .as_ref()
                .and_then(|connection_calls| connection_calls.kept::<Registered>().get())
        {
            message.tell_registration(&registration);
        }
        let answer_bytes = || AnswerBytes::of(caller.bytes.clone());
        if message.path == calls::ENUMERATE_DEVICES {
            let asking =
                Asking { forwarder: &self.forwarder, caller: caller.connection, bytes: &caller.bytes };
            // Boxed, as a client does that once: every call would be as large as three of its calls.
            return Box::pin(self.devices.exchange(&asking, &message, call)).await;
        }
        if call.kind == Kind::Register {
            if let Some(origin) = &self.origin {
                message.tell_origin(origin.clone());
            }
            self.registers(call.dialect, &message).await;
        }
        let reply = tokio::select! {
            biased;
            reply = self.forwarder.call(&message, caller.connection, answer_bytes(), call) => reply?,
            () = self.stopping.begun(), if call.kind == Kind::Poll => self.release(&message, &answer_bytes()).await?,
        };
        if call.kind == Kind::Register && reply.is_ok() {
            self.registered(call.dialect, &message, &reply, connection_calls).await;
        }
        Ok(reply)
    }

    /// A client may lose its cluster before its first heartbeat, and the cluster its client.
    async fn registered(
        &self,
        dialect: Dialect,
        message: &Message,
        reply: &Reply,
        connection_calls: Option<ConnectionCalls>,
    ) {
        let request = message_of(message.body.clone(), message.is_gzip()).await;
        let answer = message_of(reply.body.clone(), false).await;
        if let (Some(request), Some(answer)) = (request, answer) {
            self.beats.registered(dialect, &request, answer);
            if matches!(dialect, Dialect::T)
                && let Some(connection_calls) = &connection_calls
                && let Ok(t::RegisterTaskRequest { source_task: Some(task), .. }) =
                    prost::Message::decode(request.clone())
            {
                let task = format!("{}/{}", task.job_name, task.task_id);
                connection_calls.kept::<Registered>().note(task, request.clone());
            }
            if let (Some(connection_calls), Dialect::N | Dialect::T) = (connection_calls, dialect) {
                let registration = Beat { path: message.path.clone(), message: request };
                self.beats.follow(&self.job_name, registration, connection_calls, self.stopping.clone());
            }
        }
    }

    /// A client begins to register. It is told before the cluster answers: that may take until all others have come, and the
    /// client may end meanwhile.
    async fn registers(&self, dialect: Dialect, message: &Message) {
        let Some(request) = message_of(message.body.clone(), message.is_gzip()).await else { return };
        match dialect {
            Dialect::N => {
                if let Ok(n::RegisterTaskRequest { incarnation, .. }) = prost::Message::decode(request) {
                    self.is_alive(incarnation);
                }
            }
            Dialect::T => {
                if let Ok(t::RegisterTaskRequest { incarnation, .. }) = prost::Message::decode(request) {
                    self.is_alive(incarnation);
                }
            }
            Dialect::L | Dialect::Foreign => {}
        }
    }

    /// A life is there. Of more than are taken, nobody is told.
    fn is_alive(&self, incarnation: u64) {
        let _ = self.lives.try_send(incarnation);
    }

    async fn heartbeat(
        &self,
        dialect: Dialect,
        request: Request<Body>,
        caller: &Caller,
        deadline: Option<Deadline>,
    ) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let given = deadline.map(|deadline| deadline.given);
        let bytes = caller.bytes.clone();
        let heartbeat = Heartbeat { front: self.clone(), bytes, dialect, path, given };
        let mut response = Grpc::new(RawCodec)
            .accept_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .unary(heartbeat, request)
            .await;
        remove_ours(response.headers_mut());
        response
    }

    /// The end of a poll whose agent stops.
    async fn release(&self, poll: &Message, answer_bytes: &AnswerBytes) -> Result<Reply, Status> {
        self.forwarder.release(poll, answer_bytes).await.ok_or_else(|| Status::cancelled(RESTARTING_TEXT))
    }
}

/// What a call is told for which there is no room, and of which nothing is held.
async fn refused(
    under_way: UnderWay,
    stopping: Stopping,
    short: Short,
) -> Result<Response<Answer<Content<Body>>>, Infallible> {
    let bytes = CallBytes::of(under_way.account().refused_call(REFUSAL_BYTES));
    let refusal = refusal(short);
    let status = if under_way.is_poll() { harmless_to_polls(&refusal) } else { refusal };
    Ok(under_way.answered(&stopping, ready(status.into_http()), bytes, cut).await)
}

/// The same with the one code that ends no client that polls.
fn harmless_to_polls(status: &Status) -> Status {
    Status::cancelled(status.message())
}

/// What a call is told that a stop ends.
fn cut(cut: Cut) -> Response<Body> {
    let text = match cut {
        Cut::Elsewhere => RESTARTING_TEXT,
        // Nobody has to prove anything to an agent.
        Cut::Unknown | Cut::Refused(_) | Cut::RefusedSince => UNKNOWN_TEXT,
    };
    Status::unavailable(text).into_http()
}

/// One heartbeat call.
struct Heartbeat {
    front: Front,
    bytes: CallBytes,
    dialect: Dialect,
    path: String,
    given: Option<Duration>,
}

impl UnaryService<Bytes> for Heartbeat {
    type Response = Bytes;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<Bytes>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let (front, bytes, dialect, given) =
            (self.front.clone(), self.bytes.clone(), self.dialect, self.given);
        let beat = Beat { path: std::mem::take(&mut self.path), message: request.into_inner() };
        Box::pin(async move {
            bytes.message(beat.message.len() as u64).map_err(refusal)?;
            let heartbeat_timeout = front.settled(Kind::Heartbeat).await?;
            // Clients of L wait for two minutes, however often they send heartbeats.
            if let Some(given) = given.filter(|_| dialect != Dialect::L) {
                front.beats.compare(given, heartbeat_timeout);
            }
            front.beats.beat(dialect, beat, given).await.map(tonic::Response::new)
        })
    }
}
