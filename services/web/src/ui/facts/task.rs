//! One task.

use serde_json::{Value, json};
use tripod_gateway::HeartbeatAges;
use tripod_state::ids::TaskId;
use tripod_state::{Scope, State};

use crate::ui::facts::{barriers, job};

/// The task of the job, and how long ago the leader heard it if that was told. `None`: there is no such task.
pub(crate) fn look(state: &State, name: &str, task: TaskId, ages: Option<&HeartbeatAges>) -> Option<Value> {
    let id = state.job_named(name)?;
    let scope = Scope { job: id, service: None };
    let report = state.tasks(scope, &[task]).ok()?;
    let info = report.tasks.first()?;
    let origin = state.origin(id, task, info.incarnation).cloned().unwrap_or_default();
    let silence = state.silence(id, task, info.incarnation, None);
    let gatherings = state.gatherings(scope, barriers::BARRIERS_SHOWN_MAX).ok()?;
    let names = |came: bool| {
        let of = |one: &tripod_state::barrier::Gathering| {
            let party = if came { &one.arrived } else { &one.missing };
            party.binary_search(&task).is_ok().then(|| barriers::name_of(&one.report.what))
        };
        gatherings.iter().filter_map(of).collect::<Vec<_>>()
    };
    let end = state.end_of(id, task, info.incarnation);
    Some(json!({
        "task": task.0,
        "standing": state.standing(id, task).map(tripod_state::task::Standing::word),
        // A number of 64 bits is none that a browser keeps.
        "incarnation": info.incarnation.0.to_string(),
        "host": state.host(id, task, info.incarnation),
        "pid": origin.pid,
        "client": origin.client,
        "agent": origin.agent,
        "launcher": origin.launcher,
        "heard_ms_ago": job::age_of(ages, info),
        "heard_told": ages.is_some(),
        "silence_limit_ms": silence.map(|silence| silence.tolerated_ms.0),
        "waits_at": names(true),
        "awaited_at": names(false),
        "error": job::error_of(state, id, info),
        "end": end.map(|end| json!({"how": end.how.to_string(), "at_ms": end.at.0, "tail": end.tail})),
    }))
}
