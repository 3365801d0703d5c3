//! Messages of dialect N to commands of the domain. Nothing is checked here: the state machine
//! checks, so that every replica refuses alike.

use tripod_proto::xla::coordination as pb;
use tripod_state::ids::{BarrierCounter, Incarnation, JobId, ServiceIncarnation, TaskId, TaskVersion};
use tripod_state::{Command, Scope, Ticket, barrier, kv, task};

/// The service life that the caller registered with. A missing field means 0, which no service has:
/// a call before registering is refused like one to an earlier life.
pub(super) fn scope(job: JobId, incarnations: Option<&pb::Incarnations>) -> Scope {
    let service = incarnations.map_or(0, |incarnations| incarnations.service_incarnation);
    Scope { job, service: Some(ServiceIncarnation(service)) }
}

pub(super) fn register(job: JobId, request: &pb::RegisterTaskRequest) -> Command {
    // A registering task does not know the service's life yet.
    let scope = Scope { job, service: None };
    let (task, incarnation) = (TaskId(request.source_task_id), Incarnation(request.incarnation));
    // Whether tasks may restart is the job's property in this dialect.
    Command::Task(task::Command::Register { scope, task, incarnation, recoverable: false })
}

pub(super) fn heartbeat(job: JobId, request: &pb::HeartbeatRequest) -> (Scope, TaskId, Incarnation) {
    let scope = scope(job, request.incarnations.as_ref());
    (scope, TaskId(request.source_task_id), Incarnation(request.incarnation))
}

pub(super) fn shutdown(job: JobId, request: &pb::ShutdownTaskRequest) -> Command {
    let scope = scope(job, request.incarnations.as_ref());
    Command::Task(task::Command::Shutdown { scope, task: TaskId(request.source_task_id) })
}

pub(super) fn watch(job: JobId, request: &pb::WatchTasksRequest) -> Ticket {
    let scope = scope(job, request.incarnations.as_ref());
    Ticket::Tasks { scope, seen: TaskVersion(request.version_number) }
}

pub(super) fn insert(job: JobId, request: pb::InsertKeyValueRequest) -> Command {
    let scope = scope(job, request.incarnations.as_ref());
    let pb::KeyValueEntry { key, value } = request.kv.unwrap_or_default();
    Command::Kv(kv::Command::Insert { scope, key, value, overwrite: request.allow_overwrite })
}

pub(super) fn get(job: JobId, request: &pb::GetKeyValueRequest) -> Ticket {
    let scope = scope(job, request.incarnations.as_ref());
    Ticket::Key { scope, asked: request.key.clone() }
}

pub(super) fn increment(job: JobId, request: &pb::IncrementKeyValueRequest) -> Command {
    let scope = scope(job, request.incarnations.as_ref());
    Command::Kv(kv::Command::Increment { scope, key: request.key.clone(), by: request.increment })
}

pub(super) fn delete(job: JobId, request: pb::DeleteKeyValueRequest) -> Command {
    // Upstream deletes what is under the key whatever `is_directory` says.
    let scope = scope(job, request.incarnations.as_ref());
    Command::Kv(kv::Command::Delete { scope, key: request.key })
}

pub(super) fn barrier(job: JobId, request: pb::BarrierRequest) -> Command {
    Command::Barrier(barrier::Command::Arrive {
        scope: scope(job, request.incarnations.as_ref()),
        barrier: request.barrier_id,
        counter: BarrierCounter(request.counter),
        timeout_ms: request.barrier_timeout_in_ms,
        tasks: request.task_ids.into_iter().map(TaskId).collect(),
        task: TaskId(request.source_task_id),
    })
}

pub(super) fn cancel(job: JobId, request: pb::CancelBarrierRequest) -> Command {
    Command::Barrier(barrier::Command::Cancel {
        scope: scope(job, request.incarnations.as_ref()),
        barrier: request.barrier_id,
        counter: BarrierCounter(request.counter),
        task: TaskId(request.source_task_id),
    })
}

pub(super) fn alive(job: JobId, request: pb::GetAliveTasksRequest) -> Command {
    Command::Task(task::Command::Alive {
        scope: scope(job, request.incarnations.as_ref()),
        task: TaskId(request.requesting_task_id),
        tasks: request.task_ids.into_iter().map(TaskId).collect(),
    })
}

pub(super) fn poll(job: JobId, request: &pb::PollForErrorRequest) -> Command {
    let scope = scope(job, request.incarnations.as_ref());
    Command::Task(task::Command::Poll { scope, task: TaskId(request.source_task_id) })
}

pub(super) fn report(job: JobId, request: pb::ReportErrorToServiceRequest) -> Command {
    Command::Task(task::Command::ReportError {
        scope: scope(job, request.incarnations.as_ref()),
        task: TaskId(request.source_task_id),
        code: request.error_code,
        message: request.error_message,
    })
}
