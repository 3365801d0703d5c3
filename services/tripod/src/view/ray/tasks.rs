//! `tripod ray tasks`.

use serde::Serialize;
use tripod_client::wire;

use crate::output::Table;

/// Characters of an error that a table shows.
const ERROR_CHARS_MAX: usize = 100;

/// A task. A contract: fields may be added, never renamed.
#[derive(Debug, Serialize)]
pub(crate) struct RayTaskView {
    operation: u64,
    function: String,
    state: String,
    /// Attempts that a worker made or makes.
    attempt: u32,
    worker: Option<u64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    error: String,
    /// How earlier attempts ended.
    history: Vec<String>,
}

impl RayTaskView {
    pub(crate) fn of(task: wire::RayTask) -> Self {
        Self {
            operation: task.operationid,
            function: task.function_name,
            state: task.state,
            attempt: task.attempt,
            worker: task.workerid,
            error: task.error,
            history: task.history,
        }
    }
}

/// All of them, a line each; with what went wrong last.
pub(crate) fn render(tasks: &[RayTaskView]) -> String {
    let mut table = Table::new(&["OPERATION", "FUNCTION", "STATE", "ATTEMPT", "WORKER", "ERROR"]);
    for task in tasks {
        let error = match (task.error.as_str(), task.history.last()) {
            ("", Some(last)) => last.as_str(),
            (error, _) => error,
        };
        table.row(vec![
            task.operation.to_string(),
            task.function.clone(),
            task.state.clone(),
            task.attempt.to_string(),
            task.worker.map(|worker| worker.to_string()).unwrap_or_default(),
            error.lines().next().unwrap_or("").chars().take(ERROR_CHARS_MAX).collect(),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_shows_the_beginning_of_what_went_wrong() {
        let task = wire::RayTask {
            operationid: 7,
            function_name: "math.add".into(),
            state: "queued".into(),
            attempt: 2,
            history: vec!["worker 3 died\nat 12:00".into()],
            ..wire::RayTask::default()
        };
        let text = render(&[RayTaskView::of(task)]);
        assert_eq!(text.lines().nth(1), Some("7          math.add  queued  2                worker 3 died"));
    }
}
