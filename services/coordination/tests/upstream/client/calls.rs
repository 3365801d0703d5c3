//! An agent's calls about keys and tasks.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tonic::Status;
use tripod_proto::xla::coordination as pb;

use super::agent::Agent;

impl Agent {
    pub(crate) async fn insert(&self, key: &str, value: &str) -> Result<(), Status> {
        self.put(key, value.to_owned().into(), false).await
    }

    pub(crate) async fn overwrite(&self, key: &str, value: &str) -> Result<(), Status> {
        self.put(key, value.to_owned().into(), true).await
    }

    /// Stores bytes of any kind.
    pub(crate) async fn put(&self, key: &str, value: Bytes, allow_overwrite: bool) -> Result<(), Status> {
        let kv = Some(pb::KeyValueEntry { key: key.to_owned(), value });
        let message = pb::InsertKeyValueRequest { incarnations: self.shared.life(), kv, allow_overwrite };
        self.shared.told(self.shared.client.clone().insert_key_value(message)).await.map(drop)
    }

    /// Waits until the key exists.
    pub(crate) fn get(&self, key: &str) -> impl Future<Output = Result<Bytes, Status>> + Send + use<> {
        let (shared, key) = (Arc::clone(&self.shared), key.to_owned());
        async move {
            let message = pb::GetKeyValueRequest { incarnations: shared.life(), key };
            let reply = shared.told_unless_over(shared.client.clone().get_key_value(message)).await?;
            Ok(value(reply.kv))
        }
    }

    /// [`Self::get`] for so long; then the call is left to itself, as upstream's agent leaves it.
    pub(crate) async fn get_within(&self, limit: Duration, key: &str) -> Result<Bytes, Status> {
        let call = tokio::spawn(self.get(key));
        match tokio::time::timeout(limit, call).await {
            Ok(outcome) => outcome.expect("no panic"),
            Err(_) => Err(Status::deadline_exceeded(format!("no key {key} within {limit:?}"))),
        }
    }

    pub(crate) async fn try_get(&self, key: &str) -> Result<Bytes, Status> {
        let message = pb::TryGetKeyValueRequest { incarnations: self.shared.life(), key: key.to_owned() };
        let reply = self.shared.told(self.shared.client.clone().try_get_key_value(message)).await?;
        Ok(value(reply.kv))
    }

    pub(crate) async fn increment(&self, key: &str, increment: i64) -> Result<i64, Status> {
        let (incarnations, key) = (self.shared.life(), key.to_owned());
        let message = pb::IncrementKeyValueRequest { incarnations, key, increment };
        let reply = self.shared.told(self.shared.client.clone().increment_key_value(message)).await?;
        let text = String::from_utf8(value(reply.kv).into()).expect("a text");
        Ok(text.parse().expect("a number"))
    }

    /// The keys of a directory with their values, as texts.
    pub(crate) async fn directory(&self, key: &str) -> Result<Vec<(String, String)>, Status> {
        let (incarnations, directory_key) = (self.shared.life(), key.to_owned());
        let message = pb::GetKeyValueDirRequest { incarnations, directory_key };
        let reply = self.shared.told(self.shared.client.clone().get_key_value_dir(message)).await?;
        let text = |entry: pb::KeyValueEntry| {
            let value = String::from_utf8(entry.value.into()).expect("a text");
            (entry.key, value)
        };
        Ok(reply.kv.into_iter().map(text).collect())
    }

    /// Deletes a key and everything under it.
    pub(crate) async fn delete(&self, key: &str) -> Result<(), Status> {
        let (incarnations, key) = (self.shared.life(), key.to_owned());
        let message = pb::DeleteKeyValueRequest { incarnations, key, is_directory: true };
        self.shared.told(self.shared.client.clone().delete_key_value(message)).await.map(drop)
    }

    /// Which of the tasks are connected, with their incarnations, once all of these have asked.
    pub(crate) fn alive(
        &self,
        tasks: &[i32],
    ) -> impl Future<Output = Result<Vec<(i32, u64)>, Status>> + Send + use<> {
        let (shared, task_ids) = (Arc::clone(&self.shared), tasks.to_vec());
        async move {
            shared.check_running()?;
            let (incarnations, requesting_task_id) = (shared.life(), shared.task);
            let message = pb::GetAliveTasksRequest { incarnations, requesting_task_id, task_ids };
            let reply = shared.told(shared.client.clone().get_alive_tasks(message)).await?;
            assert_eq!(reply.alive_task_ids.len(), reply.incarnations.len(), "parallel lists");
            Ok(reply.alive_task_ids.into_iter().zip(reply.incarnations).collect())
        }
    }

    /// How all tasks are, now.
    pub(crate) async fn watch_tasks(&self) -> Result<Vec<pb::TaskInfo>, Status> {
        let message = pb::WatchTasksRequest { incarnations: self.shared.life(), version_number: -1 };
        let reply = self.shared.told(self.shared.client.clone().watch_tasks(message)).await?;
        Ok(reply.task_state)
    }

    /// Tells the service that this task is broken; the agent itself goes on.
    pub(crate) async fn report(&self, error: &Status) -> Result<(), Status> {
        let message = pb::ReportErrorToServiceRequest {
            incarnations: self.shared.life(),
            source_task_id: self.shared.task,
            error_code: error.code().into(),
            error_message: error.message().to_owned(),
        };
        self.shared.told(self.shared.client.clone().report_error_to_service(message)).await.map(drop)
    }
}

fn value(entry: Option<pb::KeyValueEntry>) -> Bytes {
    entry.expect("an entry").value
}
