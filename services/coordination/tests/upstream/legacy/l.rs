//! The client of dialect L.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tokio::time::Instant;
use tonic::Status;
use tonic::transport::Channel;
use tripod_proto::xla as pb;
use tripod_proto::xla::distributed_runtime_service_client::DistributedRuntimeServiceClient;

use super::link::{Link, Options, is_transient, patiently, repeatedly};
use crate::client::ms;
use crate::client::topology::{Global, Local};

const PROTOCOL_VERSION: i32 = 3;
/// A barrier's call lasts at least so long, so that the service's own time-out can be told.
const BARRIER_CALL_MIN: Duration = Duration::from_secs(5);

pub(super) struct Client {
    stub: DistributedRuntimeServiceClient<Channel>,
    node: i32,
    options: Options,
    link: Arc<Link>,
    session: OnceLock<u64>,
    attempts: AtomicU64,
}

impl Client {
    pub(super) fn new(channel: Channel, node: i32, options: Options) -> Self {
        let stub = DistributedRuntimeServiceClient::new(channel);
        let (link, session) = (Arc::new(Link::new()), OnceLock::new());
        Self { stub, node, options, link, session, attempts: AtomicU64::new(0) }
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    pub(super) async fn connect(self: Arc<Self>) -> Result<(), Status> {
        let deadline = Instant::now() + self.options.init_timeout;
        let connected = repeatedly(|| Arc::clone(&self).try_to_connect(), |_| Instant::now() < deadline);
        let session = connected.await.map_err(|last| {
            Status::deadline_exceeded(format!("Connect() timed out, last of: {}", last.message()))
        })?;
        self.session.set(session).expect("a client connects once");
        let (stub, link, options) = (self.stub.clone(), Arc::clone(&self.link), self.options);
        let beat = pb::HeartbeatRequest { session_id: session, node_id: self.node };
        tokio::spawn(beat_on(stub, link, options, beat));
        Ok(())
    }

    async fn try_to_connect(self: Arc<Self>) -> Result<u64, Status> {
        // Upstream's are random; all that counts is that every attempt has another one.
        let client_id = 1 + self.attempts.fetch_add(1, Ordering::Relaxed);
        let request = pb::ConnectRequest {
            protocol_version: PROTOCOL_VERSION,
            timeout_milliseconds: milliseconds(self.options.rpc_timeout / 2),
            node_id: self.node,
            client_id,
        };
        let call = || {
            let (mut stub, request) = (self.stub.clone(), request);
            async move { stub.connect(request).await }
        };
        Ok(patiently(self.options.rpc_timeout, call).await?.session_id)
    }

    pub(super) async fn shut_down(&self) -> Result<(), Status> {
        let request = pb::ShutdownRequest { session_id: self.session(), node_id: 0 };
        let call = || {
            let (mut stub, request) = (self.stub.clone(), request);
            async move { stub.shutdown(request).await }
        };
        patiently(self.options.shutdown_timeout, call).await?;
        self.link.end();
        Ok(())
    }

    pub(super) async fn enumerate(&self, local: &Local) -> Result<Global, Status> {
        let local = Local { node_id: self.node, ..local.clone() };
        let local_topology = local.encode_to_vec().into();
        let request = pb::EnumerateDevicesRequest { session_id: self.session(), local_topology };
        let call = || {
            let (mut stub, request) = (self.stub.clone(), request.clone());
            async move { stub.enumerate_devices(request).await }
        };
        let reply = patiently(self.options.rpc_timeout, call).await?;
        Ok(Global::decode(reply.global_topology).expect("a topology"))
    }

    pub(super) async fn wait_at_barrier(&self, id: &str, timeout: Duration) -> Result<(), Status> {
        let request = pb::WaitAtBarrierRequest {
            session_id: self.session(),
            barrier_id: id.to_owned().into(),
            node_id: self.node,
            timeout_milliseconds: milliseconds(timeout),
        };
        let call = || {
            let (mut stub, request) = (self.stub.clone(), request.clone());
            async move { stub.wait_at_barrier(request).await }
        };
        patiently(timeout.max(BARRIER_CALL_MIN), call).await.map(drop)
    }

    pub(super) async fn get(&self, key: &str, timeout: Duration) -> Result<Bytes, Status> {
        let request = pb::KeyValueGetRequest {
            session_id: self.session(),
            key: key.to_owned().into(),
            timeout_milliseconds: milliseconds(timeout),
        };
        let call = || {
            let (mut stub, request) = (self.stub.clone(), request.clone());
            async move { stub.key_value_get(request).await }
        };
        Ok(patiently(timeout, call).await?.value)
    }

    pub(super) async fn set(&self, key: &str, value: &str) -> Result<(), Status> {
        let (key, value) = (key.to_owned().into(), value.to_owned().into());
        let request = pb::KeyValueSetRequest { session_id: self.session(), key, value };
        let call = || {
            let (mut stub, request) = (self.stub.clone(), request.clone());
            async move { stub.key_value_set(request).await }
        };
        patiently(self.options.rpc_timeout, call).await.map(drop)
    }

    fn session(&self) -> u64 {
        *self.session.get().expect("it has connected")
    }
}

async fn beat_on(
    stub: DistributedRuntimeServiceClient<Channel>,
    link: Arc<Link>,
    options: Options,
    beat: pb::HeartbeatRequest,
) {
    let mut missing = 0;
    while link.lasts(options.heartbeat_interval).await {
        let call = || {
            let mut stub = stub.clone();
            async move { stub.heartbeat(beat).await }
        };
        match patiently(options.heartbeat_interval, call).await {
            Ok(_) => missing = 0,
            Err(status) => {
                missing += 1;
                if !is_transient(&status) || missing >= options.max_missing_heartbeats {
                    link.fail(&status);
                    return;
                }
            }
        }
    }
}

fn milliseconds(length: Duration) -> i32 {
    i32::try_from(ms(length).0).expect("a short time")
}
