//! Messages of dialect T to commands of the domain. Tasks are told apart by their number alone:
//! `job_name` is `worker`, `jax_worker` or empty, by the client's age.

use bytes::Bytes;
use prost::Message;
use tripod_proto::tensorflow as pb;
use tripod_state::ids::{BarrierCounter, Incarnation, JobId, TaskId, TaskVersion};
use tripod_state::{Command, Scope, Ticket, barrier, kv, task};

/// The scope of a call: this dialect carries no service incarnation.
pub(super) fn scope(job: JobId) -> Scope {
    Scope { job, service: None }
}

/// Task 0 arrives as an absent or empty message: proto3 does not send zeroes.
fn task(source: Option<&pb::CoordinatedTask>) -> TaskId {
    TaskId(source.map_or(0, |task| task.task_id))
}

/// The numbers of a list of tasks.
pub(super) fn tasks(list: &[pb::CoordinatedTask]) -> Vec<TaskId> {
    list.iter().map(|task| TaskId(task.task_id)).collect()
}

pub(super) fn register(job: JobId, request: &pb::RegisterTaskRequest) -> Command {
    Command::Task(task::Command::Register {
        scope: scope(job),
        task: task(request.source_task.as_ref()),
        incarnation: Incarnation(request.incarnation),
        recoverable: request.source_task.as_ref().is_some_and(|task| task.recoverable),
    })
}

pub(super) fn heartbeat(job: JobId, request: &pb::HeartbeatRequest) -> (Scope, TaskId, Incarnation) {
    (scope(job), task(request.source_task.as_ref()), Incarnation(request.incarnation))
}

pub(super) fn devices(job: JobId, request: pb::WaitForAllTasksRequest) -> Command {
    let devices = request.device_info.unwrap_or_default().device;
    Command::Task(task::Command::ExchangeDevices {
        scope: scope(job),
        task: task(request.source_task.as_ref()),
        devices: devices.iter().map(|device| Bytes::from(device.encode_to_vec())).collect(),
    })
}

pub(super) fn shutdown(job: JobId, request: &pb::ShutdownTaskRequest) -> Command {
    let task = task(request.source_task.as_ref());
    Command::Task(task::Command::Shutdown { scope: scope(job), task })
}

pub(super) fn reset(job: JobId, request: &pb::ResetTaskRequest) -> Command {
    let task = task(request.source_task.as_ref());
    Command::Task(task::Command::Reset { scope: scope(job), task })
}

pub(super) fn report(job: JobId, request: pb::ReportErrorToServiceRequest) -> Command {
    Command::Task(task::Command::ReportError {
        scope: scope(job),
        task: task(request.error_origin.as_ref()),
        code: request.error_code,
        message: request.error_message,
    })
}

pub(super) fn watch(job: JobId, request: &pb::WatchJobStateRequest) -> Ticket {
    Ticket::Tasks { scope: scope(job), seen: TaskVersion(request.version_number) }
}

pub(super) fn insert(job: JobId, request: pb::InsertKeyValueRequest) -> Command {
    let pb::KeyValueEntry { key, value } = request.kv.unwrap_or_default();
    Command::Kv(kv::Command::Insert { scope: scope(job), key, value, overwrite: request.allow_overwrite })
}

pub(super) fn get(job: JobId, request: &pb::GetKeyValueRequest) -> Ticket {
    Ticket::Key { scope: scope(job), asked: request.key.clone() }
}

pub(super) fn increment(job: JobId, request: &pb::IncrementKeyValueRequest) -> Command {
    Command::Kv(kv::Command::Increment { scope: scope(job), key: request.key.clone(), by: request.increment })
}

pub(super) fn delete(job: JobId, request: pb::DeleteKeyValueRequest) -> Command {
    // Upstream deletes what is under the key whatever `is_directory` says.
    Command::Kv(kv::Command::Delete { scope: scope(job), key: request.key })
}

pub(super) fn barrier(job: JobId, request: pb::BarrierRequest) -> Command {
    Command::Barrier(barrier::Command::Arrive {
        scope: scope(job),
        barrier: request.barrier_id,
        counter: BarrierCounter(request.counter),
        timeout_ms: request.barrier_timeout_in_ms,
        tasks: tasks(&request.tasks),
        task: task(request.source_task.as_ref()),
    })
}

pub(super) fn cancel(job: JobId, request: pb::CancelBarrierRequest) -> Command {
    Command::Barrier(barrier::Command::Cancel {
        scope: scope(job),
        barrier: request.barrier_id,
        counter: BarrierCounter(request.counter),
        task: task(request.source_task.as_ref()),
    })
}

pub(super) fn alive(job: JobId, request: &pb::GetAliveTasksRequest) -> Command {
    Command::Task(task::Command::Alive {
        scope: scope(job),
        task: task(request.requesting_task.as_ref()),
        tasks: tasks(&request.tasks),
    })
}

pub(super) fn poll(job: JobId, request: &pb::PollForErrorRequest) -> Command {
    let task = task(request.source_task.as_ref());
    Command::Task(task::Command::Poll { scope: scope(job), task })
}
