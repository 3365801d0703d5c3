//! Answers of the domain to messages of dialect N.

use bytes::Bytes;
use tonic::{Response, Status};
use tripod_proto::xla::coordination as pb;
use tripod_state::Answer;
use tripod_state::state::Entry;
use tripod_state::task::{Info, Phase};

use crate::dialect::Dialect;
use crate::front::unexpected;
use crate::status::Rendered;

/// The outcome of a call.
pub(super) type Outcome<T> = Result<Response<T>, Status>;

/// An empty message, for everything that only succeeds.
pub(super) fn done<T: Default>(answer: &Answer) -> Outcome<T> {
    match answer {
        Answer::Done | Answer::Deleted { .. } | Answer::Value { .. } => Ok(Response::new(T::default())),
        other => Err(unexpected(other)),
    }
}

pub(super) fn registered(answer: &Answer) -> Outcome<pb::RegisterTaskResponse> {
    match answer {
        Answer::Registered { service } => {
            Ok(Response::new(pb::RegisterTaskResponse { service_incarnation: service.0 }))
        }
        other => Err(unexpected(other)),
    }
}

pub(super) fn beat(answer: &Answer) -> Outcome<pb::HeartbeatResponse> {
    match answer {
        Answer::Registered { service } => {
            Ok(Response::new(pb::HeartbeatResponse { service_incarnation: service.0 }))
        }
        other => Err(unexpected(other)),
    }
}

pub(super) fn tasks(answer: Answer) -> Outcome<pb::WatchTasksResponse> {
    match answer {
        Answer::Tasks(report) => Ok(Response::new(pb::WatchTasksResponse {
            task_state: report.tasks.iter().map(task_info).collect(),
            version_number: report.version.0,
        })),
        other => Err(unexpected(&other)),
    }
}

/// A key in a reply is the key as the caller wrote it, not the normalised one.
pub(super) fn got(asked: String, answer: Answer) -> Outcome<pb::GetKeyValueResponse> {
    match answer {
        Answer::Value { value, .. } => {
            Ok(Response::new(pb::GetKeyValueResponse { kv: Some(pb::KeyValueEntry { key: asked, value }) }))
        }
        other => Err(unexpected(&other)),
    }
}

pub(super) fn found(asked: String, value: Bytes) -> Outcome<pb::TryGetKeyValueResponse> {
    Ok(Response::new(pb::TryGetKeyValueResponse { kv: Some(pb::KeyValueEntry { key: asked, value }) }))
}

pub(super) fn incremented(asked: String, answer: Answer) -> Outcome<pb::IncrementKeyValueResponse> {
    match answer {
        Answer::Value { value, .. } => {
            let kv = Some(pb::KeyValueEntry { key: asked, value });
            Ok(Response::new(pb::IncrementKeyValueResponse { kv }))
        }
        other => Err(unexpected(&other)),
    }
}

/// Upstream leaves the reply's own `directory_key` empty.
pub(super) fn directory(entries: Vec<Entry>) -> Outcome<pb::GetKeyValueDirResponse> {
    let entry = |entry: Entry| pb::KeyValueEntry { key: entry.key.as_str().to_owned(), value: entry.value };
    let kv = entries.into_iter().map(entry).collect();
    Ok(Response::new(pb::GetKeyValueDirResponse { directory_key: String::new(), kv }))
}

pub(super) fn passed(answer: &Answer) -> Outcome<pb::BarrierResponse> {
    match answer {
        Answer::BarrierPassed { counter } => Ok(Response::new(pb::BarrierResponse { counter: counter.0 })),
        other => Err(unexpected(other)),
    }
}

pub(super) fn alive(answer: Answer) -> Outcome<pb::GetAliveTasksResponse> {
    match answer {
        Answer::Alive(tasks) => Ok(Response::new(pb::GetAliveTasksResponse {
            alive_task_ids: tasks.iter().map(|(task, _)| task.0).collect(),
            incarnations: tasks.iter().map(|(_, incarnation)| incarnation.0).collect(),
        })),
        other => Err(unexpected(&other)),
    }
}

fn task_info(info: &Info) -> pb::TaskInfo {
    let error = info.error.as_ref().map(|fault| Rendered::of(fault, Dialect::N));
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
