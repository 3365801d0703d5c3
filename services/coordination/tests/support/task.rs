//! One task as a raw client of dialect N: every method is one message, and nothing is tried again.
//!
//! The futures own what they need, so that a test can let them wait in the background.

use std::future::Future;

use bytes::Bytes;
use tonic::transport::Channel;
use tonic::{Response, Status};
use tripod_proto::xla::coordination as pb;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient as Client;

use super::SERVICE;

/// What a call came to.
pub(crate) type Outcome<T> = Result<T, Status>;

/// Long enough for a barrier that is not meant to time out.
pub(crate) const PATIENCE_MS: i64 = 60_000;

/// The first life of a task in the tests.
pub(crate) fn life(id: i32) -> u64 {
    100 + u64::from(id.unsigned_abs())
}

/// The message of a reply, which must come in the time that a test has.
pub(crate) async fn soon<T>(call: impl Future<Output = Outcome<Response<T>>>) -> Outcome<T> {
    tripod_wait::within("an answer", call).await.map(Response::into_inner)
}

/// One life of a task.
#[derive(Clone)]
pub(crate) struct Task {
    client: Client<Channel>,
    pub(crate) id: i32,
    pub(crate) life: u64,
}

impl Task {
    pub(crate) fn new(channel: &Channel, id: i32) -> Self {
        Self { client: Client::new(channel.clone()), id, life: life(id) }
    }

    /// The same task after its process has started again.
    pub(crate) fn restarted(&self) -> Self {
        Self { life: self.life + 1000, ..self.clone() }
    }

    /// Registers; tells the service's incarnation.
    pub(crate) fn register(&self) -> impl Future<Output = Outcome<u64>> + use<> {
        let mut client = self.client.clone();
        let request = pb::RegisterTaskRequest { incarnation: self.life, source_task_id: self.id };
        async move { Ok(soon(client.register_task(request)).await?.service_incarnation) }
    }

    /// One heartbeat; tells the service's incarnation.
    pub(crate) fn beat(&self) -> impl Future<Output = Outcome<u64>> + use<> {
        let mut client = self.client.clone();
        let request = pb::HeartbeatRequest {
            incarnations: self.incarnations(),
            incarnation: self.life,
            source_task_id: self.id,
        };
        async move { Ok(soon(client.heartbeat(request)).await?.service_incarnation) }
    }

    pub(crate) fn poll(&self) -> impl Future<Output = Outcome<()>> + use<> {
        let mut client = self.client.clone();
        let request = pb::PollForErrorRequest { incarnations: self.incarnations(), source_task_id: self.id };
        async move { soon(client.poll_for_error(request)).await.map(|_| ()) }
    }

    pub(crate) fn shut_down(&self) -> impl Future<Output = Outcome<()>> + use<> {
        let mut client = self.client.clone();
        let request = pb::ShutdownTaskRequest { incarnations: self.incarnations(), source_task_id: self.id };
        async move { soon(client.shutdown_task(request)).await.map(|_| ()) }
    }

    pub(crate) fn report(&self, code: i32, text: &str) -> impl Future<Output = Outcome<()>> + use<> {
        let mut client = self.client.clone();
        let request = pb::ReportErrorToServiceRequest {
            incarnations: self.incarnations(),
            source_task_id: self.id,
            error_code: code,
            error_message: text.to_owned(),
        };
        async move { soon(client.report_error_to_service(request)).await.map(|_| ()) }
    }

    /// Arrives at a barrier of the tasks `of`, of all if there are none; tells the instance's counter.
    pub(crate) fn arrive(
        &self,
        barrier: &str,
        counter: i64,
        of: &[i32],
    ) -> impl Future<Output = Outcome<i64>> + use<> {
        self.arrive_within(PATIENCE_MS, barrier, counter, of)
    }

    /// [`Self::arrive`], with a time-out for the instance that it may open.
    pub(crate) fn arrive_within(
        &self,
        timeout_ms: i64,
        barrier: &str,
        counter: i64,
        of: &[i32],
    ) -> impl Future<Output = Outcome<i64>> + use<> {
        let mut client = self.client.clone();
        let request = pb::BarrierRequest {
            incarnations: self.incarnations(),
            barrier_id: barrier.to_owned(),
            barrier_timeout_in_ms: timeout_ms,
            task_ids: of.to_vec(),
            source_task_id: self.id,
            counter,
        };
        async move { Ok(soon(client.barrier(request)).await?.counter) }
    }

    pub(crate) fn cancel(&self, barrier: &str, counter: i64) -> impl Future<Output = Outcome<()>> + use<> {
        let mut client = self.client.clone();
        let request = pb::CancelBarrierRequest {
            incarnations: self.incarnations(),
            barrier_id: barrier.to_owned(),
            counter,
            source_task_id: self.id,
        };
        async move { soon(client.cancel_barrier(request)).await.map(|_| ()) }
    }

    /// Which of the tasks `of` are alive, with their lives, ascending.
    pub(crate) fn alive(&self, of: &[i32]) -> impl Future<Output = Outcome<Vec<(i32, u64)>>> + use<> {
        let mut client = self.client.clone();
        let request = pb::GetAliveTasksRequest {
            incarnations: self.incarnations(),
            requesting_task_id: self.id,
            task_ids: of.to_vec(),
        };
        async move {
            let reply = soon(client.get_alive_tasks(request)).await?;
            assert_eq!(reply.alive_task_ids.len(), reply.incarnations.len(), "one life for each task");
            let mut alive: Vec<_> = reply.alive_task_ids.into_iter().zip(reply.incarnations).collect();
            alive.sort_unstable();
            Ok(alive)
        }
    }

    /// The states of all tasks, as soon as they are of another version than `version`.
    pub(crate) fn watch(
        &self,
        version: i64,
    ) -> impl Future<Output = Outcome<pb::WatchTasksResponse>> + use<> {
        let mut client = self.client.clone();
        let request = pb::WatchTasksRequest { incarnations: self.incarnations(), version_number: version };
        async move { soon(client.watch_tasks(request)).await }
    }

    pub(crate) fn insert(&self, key: &str, value: &str) -> impl Future<Output = Outcome<()>> + use<> {
        self.put(key, value, false)
    }

    pub(crate) fn overwrite(&self, key: &str, value: &str) -> impl Future<Output = Outcome<()>> + use<> {
        self.put(key, value, true)
    }

    fn put(
        &self,
        key: &str,
        value: &str,
        allow_overwrite: bool,
    ) -> impl Future<Output = Outcome<()>> + use<> {
        let mut client = self.client.clone();
        let kv = Some(pb::KeyValueEntry { key: key.to_owned(), value: Bytes::from(value.to_owned()) });
        let request = pb::InsertKeyValueRequest { incarnations: self.incarnations(), kv, allow_overwrite };
        async move { soon(client.insert_key_value(request)).await.map(|_| ()) }
    }

    /// A key's value, as soon as it has one.
    pub(crate) fn get(&self, key: &str) -> impl Future<Output = Outcome<String>> + use<> {
        let mut client = self.client.clone();
        let request = pb::GetKeyValueRequest { incarnations: self.incarnations(), key: key.to_owned() };
        async move { Ok(value_of(soon(client.get_key_value(request)).await?.kv)) }
    }

    pub(crate) fn try_get(&self, key: &str) -> impl Future<Output = Outcome<String>> + use<> {
        let mut client = self.client.clone();
        let request = pb::TryGetKeyValueRequest { incarnations: self.incarnations(), key: key.to_owned() };
        async move { Ok(value_of(soon(client.try_get_key_value(request)).await?.kv)) }
    }

    /// Adds to a key's number; tells the sum.
    pub(crate) fn increment(&self, key: &str, by: i64) -> impl Future<Output = Outcome<String>> + use<> {
        let mut client = self.client.clone();
        let request = pb::IncrementKeyValueRequest {
            incarnations: self.incarnations(),
            key: key.to_owned(),
            increment: by,
        };
        async move { Ok(value_of(soon(client.increment_key_value(request)).await?.kv)) }
    }

    /// The keys below a directory with their values, in the order of the reply.
    pub(crate) fn directory(
        &self,
        key: &str,
    ) -> impl Future<Output = Outcome<Vec<(String, String)>>> + use<> {
        let mut client = self.client.clone();
        let request =
            pb::GetKeyValueDirRequest { incarnations: self.incarnations(), directory_key: key.to_owned() };
        async move {
            let entries = soon(client.get_key_value_dir(request)).await?.kv;
            Ok(entries.into_iter().map(|entry| (entry.key.clone(), value_of(Some(entry)))).collect())
        }
    }

    /// Deletes a key and what is below it.
    pub(crate) fn delete(&self, key: &str) -> impl Future<Output = Outcome<()>> + use<> {
        let mut client = self.client.clone();
        let request = pb::DeleteKeyValueRequest {
            incarnations: self.incarnations(),
            key: key.to_owned(),
            is_directory: false,
        };
        async move { soon(client.delete_key_value(request)).await.map(|_| ()) }
    }

    fn incarnations(&self) -> Option<pb::Incarnations> {
        let (task_incarnation, service_incarnation) = (self.life, SERVICE);
        Some(pb::Incarnations { task_incarnation, service_incarnation, ..Default::default() })
    }
}

fn value_of(entry: Option<pb::KeyValueEntry>) -> String {
    String::from_utf8(entry.expect("an entry").value.to_vec()).expect("text")
}
