//! One life of a task: its calls in the dialect that it speaks.

use bytes::Bytes;
use tonic::{Request, Response, Status};
use tripod_calls::Way;
use tripod_proto::metadata::JOB;
use tripod_proto::tensorflow as t;
use tripod_proto::tensorflow::coordination_service_client::CoordinationServiceClient as DialectT;
use tripod_proto::xla::coordination as n;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient as DialectN;

use super::super::dialect::Dialect;
use tripod_checkers::history::{Incarnation, Job, TaskId};

/// What JAX's clients call the group of their tasks in dialect T.
const GROUP: &str = "jax_worker";

/// Who calls. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Life {
    pub(super) dialect: Dialect,
    pub(super) job: Job,
    pub(super) task: TaskId,
    pub(super) incarnation: Incarnation,
    /// The service's incarnation, as the registration told it.
    pub(super) service: u64,
}

impl Life {
    /// Joins the job; tells the service's incarnation.
    pub(super) async fn register(self, way: Way) -> Result<Response<u64>, Status> {
        let incarnation = self.incarnation.0;
        match self.dialect {
            Dialect::N => {
                let message = n::RegisterTaskRequest { incarnation, source_task_id: self.task.0 };
                let told = DialectN::new(way).register_task(self.named(message)).await?;
                Ok(told.map(|told| told.service_incarnation))
            }
            Dialect::T => {
                let message = t::RegisterTaskRequest { incarnation, source_task: Some(self.source()) };
                let told = DialectT::new(way).register_task(self.named(message)).await?;
                Ok(told.map(|told| told.leader_incarnation))
            }
        }
    }

    pub(super) async fn beat(self, way: Way) -> Result<Response<()>, Status> {
        let (incarnation, source_task_id) = (self.incarnation.0, self.task.0);
        match self.dialect {
            Dialect::N => {
                let message = n::HeartbeatRequest { incarnations: self.lives(), incarnation, source_task_id };
                Ok(DialectN::new(way).heartbeat(self.named(message)).await?.map(drop))
            }
            Dialect::T => {
                let message = t::HeartbeatRequest { incarnation, source_task: Some(self.source()) };
                Ok(DialectT::new(way).heartbeat(self.named(message)).await?.map(drop))
            }
        }
    }

    /// Leaves the job in order.
    pub(super) async fn leave(self, way: Way) -> Result<Response<()>, Status> {
        match self.dialect {
            Dialect::N => {
                let message =
                    n::ShutdownTaskRequest { incarnations: self.lives(), source_task_id: self.task.0 };
                Ok(DialectN::new(way).shutdown_task(self.named(message)).await?.map(drop))
            }
            Dialect::T => {
                let message = t::ShutdownTaskRequest { source_task: Some(self.source()) };
                Ok(DialectT::new(way).shutdown_task(self.named(message)).await?.map(drop))
            }
        }
    }

    /// Waits at a barrier of the whole job.
    pub(super) async fn arrive(self, way: Way, at: Meeting) -> Result<Response<()>, Status> {
        let Meeting { name, counter, timeout_ms } = at;
        let barrier_timeout_in_ms = i64::try_from(timeout_ms).unwrap_or(i64::MAX);
        match self.dialect {
            Dialect::N => {
                let message = n::BarrierRequest {
                    incarnations: self.lives(),
                    barrier_id: name.to_owned(),
                    barrier_timeout_in_ms,
                    task_ids: Vec::new(),
                    source_task_id: self.task.0,
                    counter,
                };
                Ok(DialectN::new(way).barrier(self.named(message)).await?.map(drop))
            }
            Dialect::T => {
                let message = t::BarrierRequest {
                    barrier_id: name.to_owned(),
                    barrier_timeout_in_ms,
                    tasks: Vec::new(),
                    source_task: Some(self.source()),
                    counter,
                };
                Ok(DialectT::new(way).barrier(self.named(message)).await?.map(drop))
            }
        }
    }

    /// Writes a key, whatever is there.
    pub(super) async fn write(self, way: Way, key: String, value: Bytes) -> Result<Response<()>, Status> {
        let allow_overwrite = true;
        match self.dialect {
            Dialect::N => {
                let kv = Some(n::KeyValueEntry { key, value });
                let message = n::InsertKeyValueRequest { incarnations: self.lives(), kv, allow_overwrite };
                Ok(DialectN::new(way).insert_key_value(self.named(message)).await?.map(drop))
            }
            Dialect::T => {
                let kv = Some(t::KeyValueEntry { key, value });
                let message = t::InsertKeyValueRequest { kv, allow_overwrite };
                Ok(DialectT::new(way).insert_key_value(self.named(message)).await?.map(drop))
            }
        }
    }

    /// Reads a key; waits until there is one.
    pub(super) async fn wait_for(self, way: Way, key: String) -> Result<Response<Option<Bytes>>, Status> {
        match self.dialect {
            Dialect::N => {
                let message = n::GetKeyValueRequest { incarnations: self.lives(), key };
                let told = DialectN::new(way).get_key_value(self.named(message)).await?;
                Ok(told.map(|told| told.kv.map(|kv| kv.value)))
            }
            Dialect::T => {
                let message = t::GetKeyValueRequest { key };
                let told = DialectT::new(way).get_key_value(self.named(message)).await?;
                Ok(told.map(|told| told.kv.map(|kv| kv.value)))
            }
        }
    }

    /// Reads a key as it is now.
    pub(super) async fn look_up(self, way: Way, key: String) -> Result<Response<Option<Bytes>>, Status> {
        match self.dialect {
            Dialect::N => {
                let message = n::TryGetKeyValueRequest { incarnations: self.lives(), key };
                let told = DialectN::new(way).try_get_key_value(self.named(message)).await?;
                Ok(told.map(|told| told.kv.map(|kv| kv.value)))
            }
            Dialect::T => {
                let message = t::TryGetKeyValueRequest { key };
                let told = DialectT::new(way).try_get_key_value(self.named(message)).await?;
                Ok(told.map(|told| told.kv.map(|kv| kv.value)))
            }
        }
    }

    fn lives(&self) -> Option<n::Incarnations> {
        Some(n::Incarnations {
            task_id: self.task.0,
            task_incarnation: self.incarnation.0,
            service_incarnation: self.service,
        })
    }

    fn source(&self) -> t::CoordinatedTask {
        t::CoordinatedTask { job_name: GROUP.to_owned(), task_id: self.task.0, recoverable: false }
    }

    /// A message for the job of that name, whatever port it goes to.
    fn named<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        let name = self.job.as_str().parse().expect("names of jobs are ASCII");
        request.metadata_mut().insert(JOB, name);
        request
    }
}

/// Where a task arrives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meeting {
    pub(super) name: &'static str,
    /// How many instances of the name came before.
    pub(super) counter: i64,
    pub(super) timeout_ms: u64,
}
