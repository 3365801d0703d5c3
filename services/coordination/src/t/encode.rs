//! Answers of the domain to messages of dialect T.

use bytes::Bytes;
use tonic::Status;
use tripod_proto::tensorflow as pb;
use tripod_state::Answer;
use tripod_state::state::Entry;
use tripod_state::task::{Info, Phase, Report};

use super::devices::{self, Form};
use crate::answer;
use crate::names::Voice;
use crate::payload::named;
use crate::status::Rendered;

pub(super) fn registered(answer: Answer) -> Result<pb::RegisterTaskResponse, Status> {
    Ok(pb::RegisterTaskResponse { leader_incarnation: answer::service(answer)?.0 })
}

pub(super) fn beat(answer: Answer) -> Result<pb::HeartbeatResponse, Status> {
    Ok(pb::HeartbeatResponse { leader_incarnation: answer::service(answer)?.0 })
}

/// The tasks of one group, if the job has groups. Their version is that of all.
pub(super) fn watched(
    answer: Answer,
    group: &str,
    voice: Voice<'_>,
) -> Result<pb::WatchJobStateResponse, Status> {
    let report = answer::report(answer)?;
    let of_group = report.tasks.iter().filter(|info| voice.is_in(info.task, group).unwrap_or(true));
    let task_state = of_group.map(|info| task_info(info, voice)).collect();
    Ok(pb::WatchJobStateResponse { task_state, version_number: report.version.0 })
}

pub(super) fn states(report: &Report, voice: Voice<'_>) -> pb::GetTaskStateResponse {
    let task_state = report.tasks.iter().map(|info| task_info(info, voice)).collect();
    pb::GetTaskStateResponse { task_state }
}

/// Every member's devices, each member's in its own order.
pub(super) fn waited(answer: Answer, form: Form) -> Result<pb::WaitForAllTasksResponse, Status> {
    let (service, devices) = answer::devices(answer)?;
    devices::encode(service.0, devices, form)
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

pub(super) fn alive(answer: Answer, voice: Voice<'_>) -> Result<pb::GetAliveTasksResponse, Status> {
    let tasks = answer::alive(answer)?;
    Ok(pb::GetAliveTasksResponse {
        alive_tasks: tasks.iter().map(|(task, _)| named(*task, voice)).collect(),
        incarnations: tasks.iter().map(|(_, incarnation)| incarnation.0).collect(),
    })
}

/// A key in a reply is the key as the caller wrote it, not the normalised one.
fn entry(key: String, value: Bytes) -> pb::KeyValueEntry {
    pb::KeyValueEntry { key, value }
}

fn task_info(info: &Info, voice: Voice<'_>) -> pb::CoordinatedTaskStateInfo {
    let error = info.error.as_ref().map(|fault| Rendered::of(fault, voice));
    // Upstream names the task itself as the source, and never says that the error was reported.
    let task = named(info.task, voice);
    let source = pb::CoordinationServiceError { is_reported_error: false, source_task: Some(task.clone()) };
    pb::CoordinatedTaskStateInfo {
        task: Some(task),
        state: phase(info.phase).into(),
        incarnation: info.incarnation.0,
        error_payload: error.is_some().then_some(source),
        error_code: error.as_ref().map_or(0, |error| error.code),
        error_message: error.map_or_else(String::new, |error| error.message),
    }
}

fn phase(phase: Phase) -> pb::CoordinatedTaskState {
    match phase {
        Phase::Disconnected => pb::CoordinatedTaskState::TaskstateDisconnected,
        Phase::Connected => pb::CoordinatedTaskState::TaskstateConnected,
        Phase::Error => pb::CoordinatedTaskState::TaskstateError,
    }
}
