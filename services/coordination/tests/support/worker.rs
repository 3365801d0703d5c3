//! One task as a raw client of dialect T, for what dialect N does not have.

use std::future::Future;

use tonic::transport::Channel;
use tripod_proto::tensorflow as pb;
use tripod_proto::tensorflow::coordination_service_client::CoordinationServiceClient as Client;

use super::task::{Outcome, PATIENCE_MS, life, soon};

/// One life of a task, by its group's name and its number there.
#[derive(Clone)]
pub(crate) struct Worker {
    client: Client<Channel>,
    name: pb::CoordinatedTask,
    pub(crate) life: u64,
}

impl Worker {
    /// The same life as [`super::task::Task`] has with that id.
    pub(crate) fn new(channel: &Channel, id: i32) -> Self {
        Self::of_group(channel, "", id)
    }

    pub(crate) fn of_group(channel: &Channel, group: &str, id: i32) -> Self {
        let name = pb::CoordinatedTask { job_name: group.to_owned(), task_id: id, recoverable: false };
        Self { client: Client::new(channel.clone()), name, life: life(id) }
    }

    /// The same task, which says that it may restart.
    pub(crate) fn recoverable(self) -> Self {
        Self { name: pb::CoordinatedTask { recoverable: true, ..self.name }, ..self }
    }

    /// The same task after its process has started again.
    pub(crate) fn restarted(&self) -> Self {
        Self { life: self.life + 1000, ..self.clone() }
    }

    /// Registers; tells the service's incarnation.
    pub(crate) fn register(&self) -> impl Future<Output = Outcome<u64>> + use<> {
        let mut client = self.client.clone();
        let request = pb::RegisterTaskRequest { incarnation: self.life, source_task: self.name() };
        async move { Ok(soon(client.register_task(request)).await?.leader_incarnation) }
    }

    /// One heartbeat; tells the service's incarnation.
    pub(crate) fn beat(&self) -> impl Future<Output = Outcome<u64>> + use<> {
        let mut client = self.client.clone();
        let request = pb::HeartbeatRequest { incarnation: self.life, source_task: self.name() };
        async move { Ok(soon(client.heartbeat(request)).await?.leader_incarnation) }
    }

    pub(crate) fn poll(&self) -> impl Future<Output = Outcome<()>> + use<> {
        let mut client = self.client.clone();
        let request = pb::PollForErrorRequest { source_task: self.name() };
        async move { soon(client.poll_for_error(request)).await.map(|_| ()) }
    }

    pub(crate) fn reset(&self) -> impl Future<Output = Outcome<()>> + use<> {
        let mut client = self.client.clone();
        let request = pb::ResetTaskRequest { source_task: self.name() };
        async move { soon(client.reset_task(request)).await.map(|_| ()) }
    }

    pub(crate) fn shut_down(&self) -> impl Future<Output = Outcome<()>> + use<> {
        let mut client = self.client.clone();
        let request = pb::ShutdownTaskRequest { source_task: self.name() };
        async move { soon(client.shutdown_task(request)).await.map(|_| ()) }
    }

    pub(crate) fn report(&self, code: i32, text: &str) -> impl Future<Output = Outcome<()>> + use<> {
        let mut client = self.client.clone();
        let request = pb::ReportErrorToServiceRequest {
            error_code: code,
            error_message: text.to_owned(),
            error_origin: self.name(),
        };
        async move { soon(client.report_error_to_service(request)).await.map(|_| ()) }
    }

    /// Arrives at the first instance of a barrier of all tasks.
    pub(crate) fn arrive(&self, barrier: &str) -> impl Future<Output = Outcome<i64>> + use<> {
        let mut client = self.client.clone();
        let request = pb::BarrierRequest {
            barrier_id: barrier.to_owned(),
            barrier_timeout_in_ms: PATIENCE_MS,
            tasks: Vec::new(),
            source_task: self.name(),
            counter: 0,
        };
        async move { Ok(soon(client.barrier(request)).await?.counter) }
    }

    /// The states of the tasks of this one's group, as soon as they are of another version than `version`.
    pub(crate) fn watch(
        &self,
        version: i64,
    ) -> impl Future<Output = Outcome<pb::WatchJobStateResponse>> + use<> {
        let mut client = self.client.clone();
        let request =
            pb::WatchJobStateRequest { job_name: self.name.job_name.clone(), version_number: version };
        async move { soon(client.watch_job_state(request)).await }
    }

    /// Hands in devices, which are named by one word each, and waits for those of all.
    pub(crate) fn exchange_devices(
        &self,
        devices: &[&str],
    ) -> impl Future<Output = Outcome<Vec<String>>> + use<> {
        let mut client = self.client.clone();
        let device = |name: &&str| prost_types::Any {
            type_url: "type.googleapis.com/tensorflow.DeviceAttributes".to_owned(),
            value: name.as_bytes().to_vec(),
        };
        let device_info = Some(pb::DeviceInfo { device: devices.iter().map(device).collect() });
        let request =
            pb::WaitForAllTasksRequest { source_task: self.name(), device_info, local_device_info: None };
        async move {
            let reply = soon(client.wait_for_all_tasks(request)).await?;
            let devices = reply.device_info.expect("devices").device.into_iter();
            Ok(devices.map(|device| String::from_utf8(device.value).expect("a word")).collect())
        }
    }

    fn name(&self) -> Option<pb::CoordinatedTask> {
        Some(self.name.clone())
    }
}
