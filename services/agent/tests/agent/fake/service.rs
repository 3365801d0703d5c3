//! All services of a fake node.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use prost::Message as _;
use tonic::Status;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::server::{Grpc, UnaryService};
use tower::Service;
use tripod_proto::metadata;
use tripod_proto::raw::RawCodec;
use tripod_proto::tripod::v1::agents_server::AgentsServer;
use tripod_proto::tripod::v1::calls_server::CallsServer;
use tripod_proto::tripod::v1::jobs_server::JobsServer;
use tripod_proto::tripod::v1::kv_server::KvServer;
use tripod_proto::tripod::v1::sessions_server::SessionsServer;
use tripod_proto::xla::coordination as n;

use super::cluster::Attempt;
use super::native::{Native, SERVICE};
use super::node::Shared;
use super::streams::Streams;

#[derive(Clone)]
pub(super) struct FakeService {
    shared: Shared,
    agents: AgentsServer<Native>,
    calls: CallsServer<Streams>,
    jobs: JobsServer<Native>,
    kv: KvServer<Native>,
    sessions: SessionsServer<Native>,
}

impl FakeService {
    pub(super) fn new(shared: Shared) -> Self {
        let native = || Native(shared.clone());
        Self {
            agents: AgentsServer::new(native()),
            calls: CallsServer::new(Streams(shared.clone())),
            jobs: JobsServer::new(native()),
            kv: KvServer::new(native()),
            sessions: SessionsServer::new(native()),
            shared,
        }
    }
}

impl Service<Request<Body>> for FakeService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path().to_owned();
        let (service, method) = path.trim_start_matches('/').split_once('/').unwrap_or_default();
        match service {
            "tripod.v1.Agents" => Box::pin(self.agents.call(request)),
            "tripod.v1.Calls" => Box::pin(self.calls.call(request)),
            "tripod.v1.Kv" => Box::pin(self.kv.call(request)),
            "tripod.v1.Jobs" => Box::pin(self.jobs.call(request)),
            "tripod.v1.Sessions" => Box::pin(self.sessions.call(request)),
            _ => {
                let call = Coordination { shared: self.shared.clone(), method: method.to_owned() };
                Box::pin(async move {
                    let mut grpc = Grpc::new(RawCodec).accept_compressed(CompressionEncoding::Gzip);
                    Ok(grpc.unary(call, request).await)
                })
            }
        }
    }
}

/// One call of a client.
struct Coordination {
    shared: Shared,
    method: String,
}

impl UnaryService<Bytes> for Coordination {
    type Response = Bytes;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<Bytes>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let (shared, method) = (self.shared.clone(), self.method.clone());
        Box::pin(async move { answer(shared, &method, request).await.map(tonic::Response::new) })
    }
}

/// Marks a request that came by a stream.
#[derive(Clone)]
pub(super) struct ByStream;

pub(super) async fn answer(
    shared: Shared,
    method: &str,
    request: tonic::Request<Bytes>,
) -> Result<Bytes, Status> {
    let by_stream = request.extensions().get::<ByStream>().is_some();
    let seen = seen(&shared, method, request.metadata(), request.get_ref());
    let attempt = Attempt { by_stream, ..seen };
    let stamp = attempt.stamp.clone();
    shared.cluster.change(|state| state.attempts.push(attempt));
    let conduct = shared.conduct.lock().clone();
    if let Some(word) = conduct.outage {
        return Err(outage(word));
    }
    let execute = |effect: fn(&mut super::cluster::State) -> Bytes| {
        let executed = shared.cluster.execute(method, stamp.as_deref(), effect);
        executed.ok_or_else(|| outage(metadata::OUTAGE_SESSION))
    };
    let reply = match method {
        "RegisterTask" => {
            execute(|_| n::RegisterTaskResponse { service_incarnation: SERVICE }.encode_to_vec().into())?
        }
        "IncrementKeyValue" => execute(|state| {
            state.counter += 1;
            let value = state.counter.to_string().into_bytes().into();
            let kv = Some(n::KeyValueEntry { key: "k".into(), value });
            n::IncrementKeyValueResponse { kv }.encode_to_vec().into()
        })?,
        "Barrier" => {
            let reply = execute(|_| Bytes::new())?;
            shared.cluster.until(|state| state.open).await;
            reply
        }
        "GetKeyValue" => {
            shared.cluster.until(|state| state.open).await;
            shared.cluster.look(|state| state.value.clone())
        }
        "PollForError" => std::future::pending().await,
        "TryGetKeyValue" => return Err(refusal()),
        _ => execute(|_| Bytes::new())?,
    };
    if conduct.swallow == Some(method) {
        std::future::pending::<()>().await;
    }
    Ok(reply)
}

fn seen(shared: &Shared, method: &str, metadata: &MetadataMap, message: &Bytes) -> Attempt {
    let text = |key: &str| metadata.get(key).map(|value| value.to_str().expect("text").to_owned());
    Attempt {
        node: shared.node,
        method: method.to_owned(),
        stamp: text(metadata::STAMP),
        job: text(metadata::JOB).unwrap_or_default(),
        lasting: text(metadata::LASTING).as_deref() == Some("1"),
        encoding: text("grpc-encoding"),
        by_stream: false,
        message: message.clone(),
    }
}

/// A refusal with everything that one can have.
fn refusal() -> Status {
    let mut status = Status::with_details(
        tonic::Code::NotFound,
        "Config key ü%2F not found.",
        Bytes::from_static(b"\x0a\xff\0"),
    );
    status.metadata_mut().insert("x-upstream", MetadataValue::from_static("kept"));
    status.metadata_mut().insert("x-tripod-note", MetadataValue::from_static("ours"));
    status.metadata_mut().insert("grpc-retry-pushback-ms", MetadataValue::from_static("-1"));
    status
}

fn outage(word: &'static str) -> Status {
    let mut status = Status::unavailable("a node's own trouble");
    status.metadata_mut().insert(metadata::OUTAGE, MetadataValue::from_static(word));
    status
}
