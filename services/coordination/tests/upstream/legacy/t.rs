//! The client of dialect T as it was then: no polls for errors, and every barrier once.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use prost_types::Any;
use tokio::time::{Instant, timeout_at};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tripod_proto::tensorflow as pb;
use tripod_proto::tensorflow::coordination_service_client::CoordinationServiceClient;

use super::link::{Link, Options, patiently, repeatedly};
use crate::client::ms;
use crate::client::topology::{Global, Local};
use crate::support::payloads::service_error;

/// Where all meet after they have registered.
const CONNECTED: &str = "PjRT_Client_Connect";
/// How long a client tries to register that is given no time for it.
const REGISTER_TIMEOUT: Duration = Duration::from_secs(3600);
/// How long a client waits after a failed heartbeat: an error means nothing if it is leaving.
const SECOND_THOUGHT: Duration = Duration::from_secs(1);
const LOCAL: &str = "type.googleapis.com/xla.LocalTopologyProto";
const GLOBAL: &str = "type.googleapis.com/xla.GlobalTopologyProto";

pub(super) struct Client {
    stub: CoordinationServiceClient<Channel>,
    task: pb::CoordinatedTask,
    incarnation: u64,
    options: Options,
    link: Arc<Link>,
}

impl Client {
    pub(super) fn new(channel: Channel, node: i32, options: Options) -> Self {
        let job_name = "jax_worker".to_owned();
        let task = pb::CoordinatedTask { job_name, task_id: node, recoverable: false };
        let incarnation = 1000 + u64::from(node.unsigned_abs());
        let stub = CoordinationServiceClient::new(channel);
        Self { stub, task, incarnation, options, link: Arc::new(Link::new()) }
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    pub(super) async fn connect(self: Arc<Self>) -> Result<(), Status> {
        let begun = Instant::now();
        let given = Some(self.options.init_timeout).filter(|given| !given.is_zero());
        let deadline = begun + given.unwrap_or(REGISTER_TIMEOUT);
        let again = |status: &Status| {
            let may = service_error(status).is_none() || status.code() == Code::Aborted;
            may && Instant::now() < deadline
        };
        let over = Err(Status::deadline_exceeded("Deadline Exceeded"));
        let registered = repeatedly(|| Arc::clone(&self).register(), again);
        let leader = timeout_at(deadline, registered).await.unwrap_or(over)?;
        let (client, link) = (self.stub.clone(), Arc::clone(&self.link));
        let interval = self.options.heartbeat_timeout() / 2;
        tokio::spawn(beat_on(client, link, interval, self.beat(), leader));
        let left = (begun + self.options.init_timeout).saturating_duration_since(Instant::now());
        self.wait_at_barrier(CONNECTED, left.max(self.options.rpc_timeout)).await
    }

    async fn register(self: Arc<Self>) -> Result<u64, Status> {
        let request = pb::RegisterTaskRequest { incarnation: self.incarnation, source_task: self.task() };
        Ok(self.stub.clone().register_task(request).await?.into_inner().leader_incarnation)
    }

    pub(super) async fn shut_down(&self) -> Result<(), Status> {
        let outcome = if self.link.has_failed() {
            Err(Status::failed_precondition("the agent was in error when it was to shut down"))
        } else {
            let request = pb::ShutdownTaskRequest { source_task: self.task() };
            let call = || {
                let (mut stub, request) = (self.stub.clone(), request.clone());
                async move { stub.shutdown_task(request).await }
            };
            patiently(self.options.shutdown_timeout, call).await.map(drop)
        };
        self.link.end();
        outcome
    }

    pub(super) async fn enumerate(&self, local: &Local) -> Result<Global, Status> {
        let local = Local { node_id: self.task.task_id, ..local.clone() };
        let device = vec![Any { type_url: LOCAL.to_owned(), value: local.encode_to_vec() }];
        let device_info = Some(pb::DeviceInfo { device });
        let request =
            pb::WaitForAllTasksRequest { source_task: self.task(), device_info, local_device_info: None };
        let reply = self.stub.clone().wait_for_all_tasks(request).await?.into_inner();
        match &reply.device_info.unwrap_or_default().device[..] {
            [one] if one.type_url == GLOBAL => Ok(Global::decode(&one.value[..]).expect("a topology")),
            other => Err(Status::internal(format!("{} devices instead of one topology", other.len()))),
        }
    }

    pub(super) async fn wait_at_barrier(&self, id: &str, timeout: Duration) -> Result<(), Status> {
        let request = pb::BarrierRequest {
            barrier_id: id.to_owned(),
            barrier_timeout_in_ms: i64::try_from(ms(timeout).0).expect("a short time"),
            tasks: Vec::new(),
            source_task: self.task(),
            counter: 0,
        };
        self.stub.clone().barrier(request).await.map(drop)
    }

    pub(super) async fn get(&self, key: &str, timeout: Duration) -> Result<Bytes, Status> {
        let request = pb::GetKeyValueRequest { key: key.to_owned() };
        let mut stub = self.stub.clone();
        let call = tokio::time::timeout(timeout, stub.get_key_value(request));
        let over = Err(Status::deadline_exceeded(format!("no key {key} within {timeout:?}")));
        let reply = call.await.unwrap_or(over)?.into_inner();
        Ok(reply.kv.expect("an entry").value)
    }

    pub(super) async fn set(&self, key: &str, value: &str) -> Result<(), Status> {
        let kv = Some(pb::KeyValueEntry { key: key.to_owned(), value: value.to_owned().into() });
        let request = pb::InsertKeyValueRequest { kv, allow_overwrite: false };
        self.stub.clone().insert_key_value(request).await.map(drop)
    }

    /// The keys of a directory with their values.
    pub(super) async fn directory(&self, key: &str) -> Result<Vec<(String, Bytes)>, Status> {
        let request = pb::GetKeyValueDirRequest { directory_key: key.to_owned() };
        let reply = self.stub.clone().get_key_value_dir(request).await?.into_inner();
        Ok(reply.kv.into_iter().map(|entry| (entry.key, entry.value)).collect())
    }

    /// Deletes a key and everything under it.
    pub(super) async fn delete(&self, key: &str) -> Result<(), Status> {
        let request = pb::DeleteKeyValueRequest { key: key.to_owned(), is_directory: true };
        self.stub.clone().delete_key_value(request).await.map(drop)
    }

    fn beat(&self) -> pb::HeartbeatRequest {
        pb::HeartbeatRequest { incarnation: self.incarnation, source_task: self.task() }
    }

    fn task(&self) -> Option<pb::CoordinatedTask> {
        Some(self.task.clone())
    }
}

async fn beat_on(
    stub: CoordinationServiceClient<Channel>,
    link: Arc<Link>,
    interval: Duration,
    beat: pb::HeartbeatRequest,
    leader: u64,
) {
    while link.lasts(interval).await {
        match stub.clone().heartbeat(beat.clone()).await {
            Ok(reply) if reply.get_ref().leader_incarnation == leader => {}
            Ok(_) => link.fail(&Status::aborted("another leader answers")),
            Err(status) => {
                if link.lasts(SECOND_THOUGHT).await {
                    link.fail(&status);
                }
            }
        }
    }
}
