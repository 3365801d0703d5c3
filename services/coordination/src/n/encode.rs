//! Answers of the domain to messages of dialect N.

use bytes::Bytes;
use tonic::Status;
use tripod_proto::xla::coordination as pb;
use tripod_state::Answer;
use tripod_state::state::Entry;
use tripod_state::task::{Info, Phase};

use crate::answer;
use crate::dialect::Dialect;
use crate::names::Voice;
use crate::status::Rendered;

pub(super) fn registered(answer: Answer) -> Result<pb::RegisterTaskResponse, Status> {
    Ok(pb::RegisterTaskResponse { service_incarnation: answer::service(answer)?.0 })
}

pub(super) fn beat(answer: Answer) -> Result<pb::HeartbeatResponse, Status> {
    Ok(pb::HeartbeatResponse { service_incarnation: answer::service(answer)?.0 })
}

pub(super) fn tasks(answer: Answer) -> Result<pb::WatchTasksResponse, Status> {
    let report = answer::report(answer)?;
    let task_state = report.tasks.iter().map(task_info).collect();
    Ok(pb::WatchTasksResponse { task_state, version_number: report.version.0 })
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
        alive_task_ids: tasks.iter().map(|(task, _)| task.0).collect(),
        incarnations: tasks.iter().map(|(_, incarnation)| incarnation.0).collect(),
    })
}

/// A key in a reply is the key as the caller wrote it, not the normalised one.
fn entry(key: String, value: Bytes) -> pb::KeyValueEntry {
    pb::KeyValueEntry { key, value }
}

fn task_info(info: &Info) -> pb::TaskInfo {
    let error = info.error.as_ref().map(|fault| Rendered::of(fault, Voice::plain(Dialect::N)));
    // Upstream names the task itself as the source, and never says that the error was reported.
    let source = pb::CoordinationServiceError { is_reported_error: false, source_task_id: info.task.0 };
    pb::TaskInfo {
        task_id: info.task.0,
        state: phase(info.phase).into(),
        incarnation: info.incarnation.0,
        error_payload: error.is_some().then_some(source),
        error_code: error.as_ref().map_or(0, |error| error.code),
        error_message: error.map_or_else(String::new, |error| error.message),
    }
}

fn phase(phase: Phase) -> pb::TaskState {
    match phase {
        Phase::Disconnected => pb::TaskState::Disconnected,
        Phase::Connected => pb::TaskState::Connected,
        Phase::Error => pb::TaskState::Error,
    }
}
