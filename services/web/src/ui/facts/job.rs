//! A job: its tasks' states, hosts and heartbeats, its barriers and its scheduler.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tripod_gateway::HeartbeatAges;
use tripod_state::barrier::{Gathering, What};
use tripod_state::ids::{JobId, TaskId};
use tripod_state::task::{Info, Protocol, Standing};
use tripod_state::{Scope, State};

use crate::ui::facts::{barriers, headline, hosts, scheduler};
use crate::ui::frames::Shown;
use crate::ui::letters;

/// Tasks whose errors are told beside the strip; the others' are on their own pages.
const TROUBLES_MAX: usize = 64;
/// Bytes of an error's text that are shown in a list.
pub(crate) const TROUBLE_BYTES_MAX: usize = 512;

/// Fields that are whole lists, and are shown seldom: with each of them goes much that has not changed.
pub(crate) const LISTS: [&str; 6] = ["curves", "hosts", "past", "stores", "troubles", "workers"];

/// A job as it is seen, with what a frame's maker remembers of it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) shown: Shown,
    pub(crate) id: JobId,
    pub(crate) tasks: u32,
    /// Whether [`LISTS`] were looked at.
    pub(crate) lists: bool,
    pub(crate) gatherings: Vec<Gathering>,
    /// Whether there are no more than these.
    pub(crate) all_gatherings: bool,
}

/// The job of that name, with [`LISTS`] or without, and when the leader heard its tasks if it said so. `None`: there is none.
pub(crate) fn look(state: &State, name: &str, ages: Option<&HeartbeatAges>, lists: bool) -> Option<Seen> {
    let id = state.job_named(name)?;
    let summary = state.job(id)?;
    let scope = Scope { job: id, service: None };
    let report = state.tasks(scope, &[]).ok()?;
    let mut gatherings = state.gatherings(scope, barriers::BARRIERS_SHOWN_MAX + 1).ok()?;
    let all_gatherings = gatherings.len() <= barriers::BARRIERS_SHOWN_MAX;
    gatherings.truncate(barriers::BARRIERS_SHOWN_MAX);
    let failed = state.barriers(scope, 0).ok()?;
    let (states, beats) = letters_of(state, id, &report.tasks, &gatherings, ages);
    let open: Vec<_> = gatherings.iter().map(barriers::open).collect();
    let failed: Vec<_> = failed.iter().map(barriers::failed).collect();
    let job = json!({
        "name": summary.name.as_str(),
        "id": summary.id.0,
        "tasks": summary.spec.tasks,
        "connected": summary.tasks_connected,
        "in_error": summary.tasks_in_error,
        "keys": summary.keys,
        "key_bytes": summary.key_bytes,
        "note": state.job_note(id).unwrap_or_default(),
        "protocols": summary.protocols.iter().map(|one| protocol(*one)).collect::<Vec<_>>(),
        "heartbeat_timeout_ms": summary.spec.heartbeat_timeout_ms.0,
        "recoverable": summary.spec.recoverable,
        "reconnect": summary.spec.reconnect,
    });
    let mut fields = BTreeMap::from([
        ("job", job),
        ("memory_bytes", json!(state.bytes_of(id))),
        ("headline", json!(headline::of(&states, &gatherings))),
        ("barriers", json!(open)),
        ("failed", json!(failed)),
        ("beats_told", ages.is_some().into()),
    ]);
    let ray = state.ray(id);
    fields.extend(ray.map(|ray| ("scheduler", scheduler::counts(ray))));
    if lists {
        fields.insert("hosts", hosts_of(state, id, &report.tasks));
        fields.insert("troubles", troubles(state, id, &report.tasks));
        fields.extend(ray.map(|ray| ("stores", scheduler::stores(ray))));
        fields.extend(ray.map(|ray| ("workers", scheduler::workers(ray))));
    }
    let tasks = summary.spec.tasks;
    Some(Seen { shown: Shown { fields, states, beats }, id, tasks, lists, gatherings, all_gatherings })
}

/// A letter for each task: how it is, and how long ago it was heard.
fn letters_of(
    state: &State,
    job: JobId,
    tasks: &[Info],
    gatherings: &[Gathering],
    ages: Option<&HeartbeatAges>,
) -> (Vec<u8>, Vec<u8>) {
    let called = gatherings.iter().filter(|one| one.report.what != What::Registration);
    let (mut arrived, mut awaited) = (BTreeSet::new(), BTreeSet::new());
    for gathering in called {
        arrived.extend(gathering.arrived.iter().copied());
        awaited.extend(gathering.missing.iter().copied());
    }
    let heard = |task: &Info| age_of(ages, task);
    let letter = |task: &Info| {
        let standing = state.standing(job, task.task).unwrap_or(Standing::NeverCame);
        if standing != Standing::Connected {
            return letters::of(standing);
        }
        let limit = state.silence(job, task.task, task.incarnation, None);
        let late = heard(task).zip(limit).is_some_and(|(age, limit)| age > limit.tolerated_ms.0 / 2);
        match task.task {
            _ if late => letters::LATE,
            id if arrived.contains(&id) => letters::IN_BARRIER,
            id if awaited.contains(&id) => letters::AWAITED,
            _ => letters::CONNECTED,
        }
    };
    let states = tasks.iter().map(letter).collect();
    let beats = match ages {
        Some(_) => tasks.iter().map(|task| heard(task).map_or(letters::AGE_UNKNOWN, letters::age)).collect(),
        None => Vec::new(),
    };
    (states, beats)
}

/// How long ago the leader heard this life of the task, in milliseconds.
pub(crate) fn age_of(ages: Option<&HeartbeatAges>, task: &Info) -> Option<u64> {
    let (incarnation, age) = ages?.get(&task.task)?;
    (*incarnation == task.incarnation).then_some(age.0)
}

/// Where the tasks run; an empty name: nobody has said it.
fn hosts_of(state: &State, job: JobId, tasks: &[Info]) -> Value {
    let host = |task: &Info| state.host(job, task.task, task.incarnation);
    let (names, runs) = hosts::runs(tasks.iter().map(host));
    json!({"names": names, "runs": runs})
}

fn troubles(state: &State, job: JobId, tasks: &[Info]) -> Value {
    let text = |task: &Info| error_of(state, job, task).map(|text| (task.task, text));
    let found = tasks.iter().filter_map(text).take(TROUBLES_MAX);
    let shown = found.map(|(TaskId(task), text)| json!({"task": task, "text": shortened(&text)}));
    Value::Array(shown.collect())
}

/// With what a task is in error, or how its process ended.
pub(crate) fn error_of(state: &State, job: JobId, task: &Info) -> Option<String> {
    if let Some(end) = state.end_of(job, task.task, task.incarnation) {
        let last_line = end.last_line();
        let line = if last_line.is_empty() { String::new() } else { format!("; its last line: {last_line}") };
        return Some(format!("its process {}{line}", end.how));
    }
    task.error.as_ref().map(tripod_state::Fault::text)
}

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(TROUBLE_BYTES_MAX)]
}

pub(crate) fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Xla => "xla",
        Protocol::TensorFlow => "tensorflow",
        Protocol::Runtime => "runtime",
    }
}
