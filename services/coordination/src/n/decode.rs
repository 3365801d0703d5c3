//! Messages of dialect N to commands of the domain. Nothing is checked here: the state machine
//! checks, so that every replica refuses alike.

use tripod_proto::xla::coordination as pb;
use tripod_state::ids::{BarrierCounter, Incarnation, ServiceIncarnation, TaskId, TaskVersion};
use tripod_state::{Command, Scope, Ticket, barrier, kv, task};

use crate::caller::Caller;

/// The service life that the caller registered with. A missing field means 0, which no service has:
/// a call before registering is refused like one to an earlier life.
pub(super) fn scope(caller: Caller, incarnations: Option<&pb::Incarnations>) -> Scope {
    let service = incarnations.map_or(0, |incarnations| incarnations.service_incarnation);
    Scope { job: caller.job, service: Some(ServiceIncarnation(service)) }
}

/// The task that says in a call that it makes it.
pub(super) fn asker(incarnations: Option<&pb::Incarnations>) -> Option<TaskId> {
    incarnations.map(|life| TaskId(life.task_id))
}

pub(super) fn register(caller: Caller, request: &pb::RegisterTaskRequest) -> Command {
    // A registering task does not know the service's life yet.
    let scope = Scope { job: caller.job, service: None };
    let (task, incarnation) = (TaskId(request.source_task_id), Incarnation(request.incarnation));
    // Whether tasks may restart is the job's property in this dialect.
    Command::Task(task::Command::Register {
        scope,
        task,
        incarnation,
        recoverable: false,
        protocol: task::Protocol::Xla,
    })
}

pub(super) fn heartbeat(caller: Caller, request: &pb::HeartbeatRequest) -> (Scope, TaskId, Incarnation) {
    let scope = scope(caller, request.incarnations.as_ref());
    (scope, TaskId(request.source_task_id), Incarnation(request.incarnation))
}

pub(super) fn shutdown(caller: Caller, request: &pb::ShutdownTaskRequest) -> Command {
    let scope = scope(caller, request.incarnations.as_ref());
    Command::Task(task::Command::Shutdown { scope, task: TaskId(request.source_task_id) })
}

pub(super) fn watch(caller: Caller, request: &pb::WatchTasksRequest) -> Ticket {
    let scope = scope(caller, request.incarnations.as_ref());
    Ticket::Tasks { scope, seen: TaskVersion(request.version_number) }
}

pub(super) fn insert(caller: Caller, request: &pb::InsertKeyValueRequest) -> Command {
    let scope = scope(caller, request.incarnations.as_ref());
    let pb::KeyValueEntry { key, value } = request.kv.clone().unwrap_or_default();
    Command::Kv(match &request.incarnations {
        Some(life) if !request.allow_overwrite => {
            let (task, incarnation) = (TaskId(life.task_id), Incarnation(life.task_incarnation));
            kv::Command::InsertAs { scope, key, value, task, incarnation }
        }
        _ => kv::Command::Insert { scope, key, value, overwrite: request.allow_overwrite },
    })
}

pub(super) fn get(caller: Caller, request: &pb::GetKeyValueRequest) -> Ticket {
    let scope = scope(caller, request.incarnations.as_ref());
    Ticket::Key { scope, asked: request.key.clone() }
}

pub(super) fn increment(caller: Caller, request: &pb::IncrementKeyValueRequest) -> Command {
    let scope = scope(caller, request.incarnations.as_ref());
    let caller = request.incarnations.as_ref().map(|life| Incarnation(life.task_incarnation));
    Command::Kv(kv::Command::Increment { scope, key: request.key.clone(), by: request.increment, caller })
}

pub(super) fn delete(caller: Caller, request: &pb::DeleteKeyValueRequest) -> Command {
    // Upstream deletes what is under the key whatever `is_directory` says.
    let scope = scope(caller, request.incarnations.as_ref());
    Command::Kv(kv::Command::Delete { scope, key: request.key.clone() })
}

pub(super) fn barrier(caller: Caller, request: &pb::BarrierRequest) -> Command {
    Command::Barrier(barrier::Command::Arrive {
        scope: scope(caller, request.incarnations.as_ref()),
        barrier: request.barrier_id.clone(),
        counter: BarrierCounter(request.counter),
        timeout_ms: request.barrier_timeout_in_ms,
        tasks: request.task_ids.iter().copied().map(TaskId).collect(),
        task: TaskId(request.source_task_id),
    })
}

pub(super) fn cancel(caller: Caller, request: &pb::CancelBarrierRequest) -> Command {
    Command::Barrier(barrier::Command::Cancel {
        scope: scope(caller, request.incarnations.as_ref()),
        barrier: request.barrier_id.clone(),
        counter: BarrierCounter(request.counter),
        task: TaskId(request.source_task_id),
    })
}

pub(super) fn alive(caller: Caller, request: &pb::GetAliveTasksRequest) -> Command {
    Command::Task(task::Command::Alive {
        scope: scope(caller, request.incarnations.as_ref()),
        task: TaskId(request.requesting_task_id),
        tasks: request.task_ids.iter().copied().map(TaskId).collect(),
    })
}

pub(super) fn poll(caller: Caller, request: &pb::PollForErrorRequest) -> Command {
    let scope = scope(caller, request.incarnations.as_ref());
    Command::Task(task::Command::Poll {
        scope,
        task: TaskId(request.source_task_id),
        wish: caller.poll_wish(),
    })
}

pub(super) fn report(caller: Caller, request: &pb::ReportErrorToServiceRequest) -> Command {
    Command::Task(task::Command::ReportError {
        scope: scope(caller, request.incarnations.as_ref()),
        task: TaskId(request.source_task_id),
        code: request.error_code,
        message: request.error_message.clone(),
    })
}
