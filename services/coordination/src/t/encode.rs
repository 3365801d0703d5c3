//! Answers of the domain to messages of dialect T.

use bytes::Bytes;
use prost::Message;
use tonic::Status;
use tripod_proto::tensorflow as pb;
use tripod_state::Answer;
use tripod_state::ids::TaskId;
use tripod_state::state::Entry;
use tripod_state::task::{Info, Phase, Report};

use crate::answer;
use crate::dialect::Dialect;
use crate::status::Rendered;

pub(super) fn registered(answer: Answer) -> Result<pb::RegisterTaskResponse, Status> {
    Ok(pb::RegisterTaskResponse { leader_incarnation: answer::service(answer)?.0 })
}

pub(super) fn beat(answer: Answer) -> Result<pb::HeartbeatResponse, Status> {
    Ok(pb::HeartbeatResponse { leader_incarnation: answer::service(answer)?.0 })
}

pub(super) fn watched(answer: Answer) -> Result<pb::WatchJobStateResponse, Status> {
    let report = answer::report(answer)?;
    let task_state = report.tasks.iter().map(task_info).collect();
    Ok(pb::WatchJobStateResponse { task_state, version_number: report.version.0 })
}

pub(super) fn states(report: &Report) -> pb::GetTaskStateResponse {
    pb::GetTaskStateResponse { task_state: report.tasks.iter().map(task_info).collect() }
}

/// Every member's devices, each member's in its own order; what they are is not our business.
pub(super) fn devices(answer: Answer) -> Result<pb::WaitForAllTasksResponse, Status> {
    let (service, devices) = answer::devices(answer)?;
    let device = devices
        .into_iter()
        .map(prost_types::Any::decode)
        .collect::<Result<_, _>>()
        .map_err(|error| Status::internal(format!("a stored device cannot be decoded: {error}")))?;
    let device_info = Some(pb::DeviceInfo { device });
    Ok(pb::WaitForAllTasksResponse { leader_incarnation: service.0, device_info })
}

pub(super) fn got(asked: String, answer: Answer) -> Result<pb::GetKeyValueResponse, Status> {
    Ok(pb::GetKeyValueResponse { kv: Some(entry(asked, answer::value(answer)?)) })
}

pub(super) fn found(asked: String, value: Bytes) -> pb::TryGetKeyValueResponse {
    pb::TryGetKeyValueResponse { kv: Some(entry(asked, value)) }
}

pub(super) fn incremented(asked: String, answer: Answer) -> Result<pb::IncrementKeyValueResponse, Status> {
    Ok(pb::IncrementKeyValueResponse { kv: Some(entry(asked, answer::value(answer)?)) })
}

/// Upstream leaves the reply's own `directory_key` empty.
pub(super) fn directory(entries: Vec<Entry>) -> pb::GetKeyValueDirResponse {
    let kv = entries.into_iter().map(|found| entry(found.key.as_str().to_owned(), found.value)).collect();
    pb::GetKeyValueDirResponse { directory_key: String::new(), kv }
}

pub(super) fn passed(answer: Answer) -> Result<pb::BarrierResponse, Status> {
    Ok(pb::BarrierResponse { counter: answer::counter(answer)?.0 })
}

pub(super) fn alive(answer: Answer) -> Result<pb::GetAliveTasksResponse, Status> {
    let tasks = answer::alive(answer)?;
    Ok(pb::GetAliveTasksResponse {
        alive_tasks: tasks.iter().map(|(task, _)| named(*task)).collect(),
        incarnations: tasks.iter().map(|(_, incarnation)| incarnation.0).collect(),
    })
}

/// A key in a reply is the key as the caller wrote it, not the normalised one.
fn entry(key: String, value: Bytes) -> pb::KeyValueEntry {
    pb::KeyValueEntry { key, value }
}

fn task_info(info: &Info) -> pb::CoordinatedTaskStateInfo {
    let error = info.error.as_ref().map(|fault| Rendered::of(fault, Dialect::T));
    // Upstream names the task itself as the source, and never says that the error was reported.
    let source =
        pb::CoordinationServiceError { is_reported_error: false, source_task: Some(named(info.task)) };
    pb::CoordinatedTaskStateInfo {
        task: Some(named(info.task)),
        state: phase(info.phase).into(),
        incarnation: info.incarnation.0,
        error_payload: error.is_some().then_some(source),
        error_code: error.as_ref().map_or(0, |error| error.code),
        error_message: error.map_or_else(String::new, |error| error.message),
    }
}

/// A task as newer clients name it: without a job.
fn named(task: TaskId) -> pb::CoordinatedTask {
    pb::CoordinatedTask { task_id: task.0, ..Default::default() }
}

fn phase(phase: Phase) -> pb::CoordinatedTaskState {
    match phase {
        Phase::Disconnected => pb::CoordinatedTaskState::TaskstateDisconnected,
        Phase::Connected => pb::CoordinatedTaskState::TaskstateConnected,
        Phase::Error => pb::CoordinatedTaskState::TaskstateError,
    }
}
