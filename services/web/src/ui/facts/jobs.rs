//! The list of jobs: one line each.

use serde_json::{Value, json};
use tripod_gateway::HeartbeatAges;
use tripod_state::State;

use crate::ui::facts::job;
use crate::ui::letters;

/// Cells of a job's small strip.
const CELLS: usize = 32;
/// Tasks that are looked at one by one for the list; jobs beyond are listed by their counts.
const TASKS_MAX: u32 = 20_000;

/// All jobs, by id.
pub(crate) fn list(state: &State) -> Value {
    let mut looked = 0_u32;
    let line = |summary: tripod_state::job::Summary| {
        let name = summary.name.as_str();
        let mut line = json!({
            "name": name,
            "tasks": summary.spec.tasks,
            "connected": summary.tasks_connected,
            "in_error": summary.tasks_in_error,
            "barriers": summary.barriers_open,
            "keys": summary.keys,
            "scheduler": state.ray(summary.id).is_some(),
        });
        looked = looked.saturating_add(summary.spec.tasks);
        if looked <= TASKS_MAX {
            let nobody_asked: Option<&HeartbeatAges> = None;
            if let Some(mut seen) = job::look(state, name, nobody_asked, false) {
                line["strip"] = letters::encode(&letters::in_cells(&seen.shown.states, CELLS)).into();
                line["headline"] = seen.shown.fields.remove("headline").unwrap_or_default();
            }
        }
        line
    };
    Value::Array(state.jobs().into_iter().map(line).collect())
}
