//! Answers of the domain to messages of dialect T.

use bytes::Bytes;
use prost::Message;
use tonic::{Response, Status};
use tripod_proto::tensorflow as pb;
use tripod_state::Answer;
use tripod_state::ids::TaskId;
use tripod_state::state::Entry;
use tripod_state::task::{Info, Phase, Report};

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
            Ok(Response::new(pb::RegisterTaskResponse { leader_incarnation: service.0 }))
        }
        other => Err(unexpected(other)),
    }
}

pub(super) fn beat(answer: &Answer) -> Outcome<pb::HeartbeatResponse> {
    match answer {
        Answer::Registered { service } => {
            Ok(Response::new(pb::HeartbeatResponse { leader_incarnation: service.0 }))
        }
        other => Err(unexpected(other)),
    }
}

pub(super) fn watched(answer: Answer) -> Outcome<pb::WatchJobStateResponse> {
    match answer {
        Answer::Tasks(report) => Ok(Response::new(pb::WatchJobStateResponse {
            task_state: report.tasks.iter().map(task_info).collect(),
            version_number: report.version.0,
        })),
        other => Err(unexpected(&other)),
    }
}

pub(super) fn states(report: &Report) -> Outcome<pb::GetTaskStateResponse> {
    let task_state = report.tasks.iter().map(task_info).collect();
    Ok(Response::new(pb::GetTaskStateResponse { task_state }))
}

/// Every member's devices, each member's in its own order; what they are is not our business.
pub(super) fn devices(answer: Answer) -> Outcome<pb::WaitForAllTasksResponse> {
    let Answer::Devices { service, devices } = answer else {
        return Err(unexpected(&answer));
    };
    let device = devices
        .into_iter()
        .map(prost_types::Any::decode)
        .collect::<Result<_, _>>()
        .map_err(|error| Status::internal(format!("a stored device cannot be decoded: {error}")))?;
    let device_info = Some(pb::DeviceInfo { device });
    Ok(Response::new(pb::WaitForAllTasksResponse { leader_incarnation: service.0, device_info }))
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
            alive_tasks: tasks.iter().map(|(task, _)| named(*task)).collect(),
            incarnations: tasks.iter().map(|(_, incarnation)| incarnation.0).collect(),
        })),
        other => Err(unexpected(&other)),
    }
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
