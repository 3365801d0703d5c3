//! Messages of dialect T to commands of the domain. Tasks go by their numbers in the job: see [`super::tasks`].
//! In a job without groups `job_name` is `worker`, `jax_worker` or empty, by the client's age.

use tripod_proto::tensorflow as pb;
use tripod_state::ids::{BarrierCounter, Incarnation, TaskId, TaskVersion};
use tripod_state::{Command, Scope, Ticket, barrier, kv, task};

use super::devices;
use crate::caller::Caller;

/// The scope of a call: this dialect carries no service incarnation.
pub(super) fn scope(caller: Caller) -> Scope {
    Scope { job: caller.job, service: None }
}

/// Task 0 arrives as an absent or empty message: proto3 does not send zeroes.
fn task(source: Option<&pb::CoordinatedTask>) -> TaskId {
    TaskId(source.map_or(0, |task| task.task_id))
}

/// The numbers of a list of tasks.
pub(super) fn tasks(list: &[pb::CoordinatedTask]) -> Vec<TaskId> {
    list.iter().map(|task| TaskId(task.task_id)).collect()
}

pub(super) fn register(caller: Caller, request: &pb::RegisterTaskRequest) -> Command {
    Command::Task(task::Command::Register {
        scope: scope(caller),
        task: task(request.source_task.as_ref()),
        incarnation: Incarnation(request.incarnation),
        recoverable: request.source_task.as_ref().is_some_and(|task| task.recoverable),
        protocol: task::Protocol::TensorFlow,
    })
}

/// The life of a task that registers so.
pub(super) fn life(request: &pb::RegisterTaskRequest) -> (TaskId, Incarnation) {
    (task(request.source_task.as_ref()), Incarnation(request.incarnation))
}

pub(super) fn heartbeat(caller: Caller, request: &pb::HeartbeatRequest) -> (Scope, TaskId, Incarnation) {
    (scope(caller), task(request.source_task.as_ref()), Incarnation(request.incarnation))
}

pub(super) fn wait(caller: Caller, request: &pb::WaitForAllTasksRequest) -> Command {
    Command::Task(task::Command::ExchangeDevices {
        scope: scope(caller),
        task: task(request.source_task.as_ref()),
        devices: devices::decode(request),
    })
}

pub(super) fn shutdown(caller: Caller, request: &pb::ShutdownTaskRequest) -> Command {
    let task = task(request.source_task.as_ref());
    Command::Task(task::Command::Shutdown { scope: scope(caller), task })
}

pub(super) fn reset(caller: Caller, request: &pb::ResetTaskRequest) -> Command {
    let task = task(request.source_task.as_ref());
    Command::Task(task::Command::Reset { scope: scope(caller), task })
}

pub(super) fn report(caller: Caller, request: &pb::ReportErrorToServiceRequest) -> Command {
    Command::Task(task::Command::ReportError {
        scope: scope(caller),
        task: task(request.error_origin.as_ref()),
        code: request.error_code,
        message: request.error_message.clone(),
    })
}

pub(super) fn watch(caller: Caller, request: &pb::WatchJobStateRequest) -> Ticket {
    Ticket::Tasks { scope: scope(caller), seen: TaskVersion(request.version_number) }
}

/// `life`: whose call it is, as far as its connection or its agent tells.
pub(super) fn insert(
    caller: Caller,
    request: &pb::InsertKeyValueRequest,
    life: Option<(TaskId, Incarnation)>,
) -> Command {
    let (scope, overwrite) = (scope(caller), request.allow_overwrite);
    let pb::KeyValueEntry { key, value } = request.kv.clone().unwrap_or_default();
    Command::Kv(match life {
        Some((task, incarnation)) if !overwrite => {
            kv::Command::InsertAs { scope, key, value, task, incarnation }
        }
        _ => kv::Command::Insert { scope, key, value, overwrite },
    })
}

pub(super) fn get(caller: Caller, request: &pb::GetKeyValueRequest) -> Ticket {
    Ticket::Key { scope: scope(caller), asked: request.key.clone() }
}

pub(super) fn increment(caller: Caller, request: &pb::IncrementKeyValueRequest) -> Command {
    Command::Kv(kv::Command::Increment {
        scope: scope(caller),
        key: request.key.clone(),
        by: request.increment,
        // No message of this dialect but a few names its sender.
        caller: None,
    })
}

pub(super) fn delete(caller: Caller, request: &pb::DeleteKeyValueRequest) -> Command {
    // Upstream deletes what is under the key whatever `is_directory` says.
    Command::Kv(kv::Command::Delete { scope: scope(caller), key: request.key.clone() })
}

pub(super) fn barrier(caller: Caller, request: &pb::BarrierRequest) -> Command {
    Command::Barrier(barrier::Command::Arrive {
        scope: scope(caller),
        barrier: request.barrier_id.clone(),
        counter: BarrierCounter(request.counter),
        timeout_ms: request.barrier_timeout_in_ms,
        tasks: tasks(&request.tasks),
        task: task(request.source_task.as_ref()),
    })
}

pub(super) fn cancel(caller: Caller, request: &pb::CancelBarrierRequest) -> Command {
    Command::Barrier(barrier::Command::Cancel {
        scope: scope(caller),
        barrier: request.barrier_id.clone(),
        counter: BarrierCounter(request.counter),
        task: task(request.source_task.as_ref()),
    })
}

pub(super) fn alive(caller: Caller, request: &pb::GetAliveTasksRequest) -> Command {
    Command::Task(task::Command::Alive {
        scope: scope(caller),
        task: task(request.requesting_task.as_ref()),
        tasks: tasks(&request.tasks),
    })
}

pub(super) fn poll(caller: Caller, request: &pb::PollForErrorRequest) -> Command {
    let task = task(request.source_task.as_ref());
    Command::Task(task::Command::Poll { scope: scope(caller), task, wish: caller.poll_wish() })
}
