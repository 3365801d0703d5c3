//! The tasks of a job as they are printed: a row for each of a few, and ranges of those that are alike of many.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::str::FromStr;

use clap::Args;
use serde::Serialize;
use tripod_client::wire;

use crate::output::Table;
use crate::view::end::EndView;
use crate::view::origin::OriginView;
use crate::view::{tasks, time};

/// More tasks than this are told in ranges.
const ROWS_MAX: usize = 64;
/// Of the table of tasks, where a host is known.
const HOST_COLUMN: usize = 3;

/// One task. A contract, as all of `job show`.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct TaskView {
    task: i32,
    /// never-came, registering, connected, left, lost, ended or error; from nodes of an earlier build connected,
    /// disconnected or error.
    state: String,
    incarnation: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    error: String,
    /// A word for programs: `task-silent`.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// How long it may be silent.
    pub(super) silence_limit_ms: u64,
    /// Where its process runs, if somebody has said it.
    #[serde(skip_serializing_if = "String::is_empty")]
    host: String,
    /// Where its process comes from, if anybody has said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<OriginView>,
    /// How its process ended, if whoever started it has said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<EndView>,
    /// How long ago the leader heard it; absent if it has not since it leads, or does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    heard_ms_ago: Option<u64>,
}

/// Which tasks are shown, and how.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TaskFilter {
    /// Show only tasks that stand there: never-came, registering, connected, left, lost, ended, error
    #[arg(long, value_name = "WORD,...", value_delimiter = ',', value_parser = STANDINGS)]
    state: Vec<String>,

    /// Show only these tasks
    #[arg(long = "task", value_name = "I|I-J,...", value_delimiter = ',')]
    tasks: Vec<TaskRange>,

    /// Show each task in a row of its own; more than 64 are told in ranges otherwise
    #[arg(long)]
    pub(super) all: bool,
}

/// The words for where a task stands.
const STANDINGS: [&str; 7] = ["never-came", "registering", "connected", "left", "lost", "ended", "error"];

/// Tasks whose ids follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TaskRange(RangeInclusive<i32>);

impl FromStr for TaskRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = |part: &str| part.parse::<u32>().ok().and_then(|id| i32::try_from(id).ok());
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match id(first).zip(id(last)) {
            Some((first, last)) if first <= last => Ok(Self(first..=last)),
            _ => Err(format!("`{text}` is neither the number of a task nor a range such as 4-9")),
        }
    }
}

impl TaskFilter {
    pub(super) fn has(&self, task: &wire::TaskState) -> bool {
        let is_there = self.state.is_empty() || self.state.iter().any(|word| word == standing(task));
        let is_named =
            self.tasks.is_empty() || self.tasks.iter().any(|range| range.0.contains(&task.task_id));
        is_there && is_named
    }
}

/// Where it stands, in the cluster's word for it, or that of nodes which know fewer.
fn standing(task: &wire::TaskState) -> &str {
    if task.standing.is_empty() { &task.state } else { &task.standing }
}

impl TaskView {
    pub(super) fn of(task: &wire::TaskState) -> Self {
        Self {
            task: task.task_id,
            state: standing(task).to_owned(),
            incarnation: task.incarnation.to_string(),
            error: task.error.clone(),
            reason: task.reason.clone(),
            silence_limit_ms: task.silence_limit_ms,
            host: task.host.clone(),
            origin: task.origin.as_ref().and_then(OriginView::of),
            end: task.end.as_ref().map(EndView::of),
            heard_ms_ago: task.heard_ms_ago,
        }
    }

    pub(super) fn id(&self) -> i32 {
        self.task
    }

    fn is_connected(&self) -> bool {
        self.state == "connected"
    }

    /// When the leader heard it; one that leads since a moment ago may not have yet.
    fn heard(&self) -> String {
        match self.heard_ms_ago {
            Some(ms) => format!("{} ago", time::seconds(ms)),
            None if self.is_connected() => "unknown".to_owned(),
            None => "-".to_owned(),
        }
    }

    /// What is wrong with it: its error, and how its process ended if that does not say it.
    fn trouble(&self) -> String {
        let end = self.end.as_ref().filter(|end| !self.error.contains(end.how()));
        match end {
            None => self.error.clone(),
            Some(end) if self.error.is_empty() => format!("its process {}", end.how()),
            Some(end) => format!("{}; its process {}", self.error, end.how()),
        }
    }
}

/// The tasks as a table. `each`: a row for each of them, however many they are. `heard_told`: the leader has said when it
/// heard them.
pub(super) fn table(tasks: &[TaskView], each: bool, heard_told: bool) -> String {
    if each || tasks.len() <= ROWS_MAX { one_by_one(tasks, each, heard_told) } else { in_ranges(tasks) }
}

/// `with_origins`: also where each process comes from, which is long.
fn one_by_one(tasks: &[TaskView], with_origins: bool, heard_told: bool) -> String {
    let with_origins = with_origins && tasks.iter().any(|task| task.origin.is_some());
    let with_hosts = tasks.iter().any(|task| !task.host.is_empty());
    let with_ages = heard_told && tasks.iter().any(TaskView::is_connected);
    let mut heads = vec!["TASK", "STATE", "INCARNATION", "ERROR"];
    if with_ages {
        heads.insert(HOST_COLUMN, "HEARD");
    }
    if with_origins {
        heads.insert(HOST_COLUMN, "PROCESS");
    }
    if with_hosts {
        heads.insert(HOST_COLUMN, "HOST");
    }
    let mut table = Table::new(&heads);
    for task in tasks {
        let mut cells =
            vec![task.task.to_string(), task.state.clone(), task.incarnation.clone(), task.trouble()];
        if with_ages {
            cells.insert(HOST_COLUMN, task.heard());
        }
        if with_origins {
            let origin = task.origin.as_ref().map_or_else(|| "-".to_owned(), OriginView::words);
            cells.insert(HOST_COLUMN, origin);
        }
        if with_hosts {
            let host = if task.host.is_empty() { "-" } else { &task.host };
            cells.insert(HOST_COLUMN, host.to_owned());
        }
        table.row(cells);
    }
    table.render()
}

/// A row for those that stand at the same place with the same error, the smallest groups first: they are looked for.
fn in_ranges(tasks: &[TaskView]) -> String {
    let mut alike = BTreeMap::<(&str, String), Vec<i32>>::new();
    for task in tasks {
        alike.entry((task.state.as_str(), task.trouble())).or_default().push(task.task);
    }
    let mut groups: Vec<_> = alike.into_iter().collect();
    groups.sort_by_key(|(_, ids)| ids.len());
    let mut table = Table::new(&["COUNT", "STATE", "TASKS", "ERROR"]);
    let more = groups.len().saturating_sub(ROWS_MAX);
    for ((state, trouble), ids) in groups.into_iter().take(ROWS_MAX) {
        table.row(vec![ids.len().to_string(), state.to_owned(), tasks::ids(&ids, ids.len()), trouble]);
    }
    let mut text = table.render();
    if more > 0 {
        text.push_str(&format!("\nand tasks with {more} other errors"));
    }
    text.push_str("\neach in a row: --all; some of them: --state, --task");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(task_id: i32, standing: &str) -> wire::TaskState {
        wire::TaskState { task_id, standing: standing.into(), state: "error".into(), ..Default::default() }
    }

    fn views(tasks: &[wire::TaskState]) -> Vec<TaskView> {
        tasks.iter().map(TaskView::of).collect()
    }

    #[test]
    fn hosts_have_a_column_where_somebody_has_told_them() {
        let at = |id, host: &str| wire::TaskState { host: host.into(), ..task(id, "connected") };
        let told = table(&views(&[at(0, "gpu-7"), at(1, "")]), false, false);
        let expected = "\
TASK  STATE      INCARNATION  HOST   ERROR
0     connected  0            gpu-7
1     connected  0            -";
        assert_eq!(told, expected);
        assert!(!table(&views(&[at(0, "")]), false, false).contains("HOST"));
    }

    #[test]
    fn where_processes_come_from_has_a_column_where_each_task_is_asked_for() {
        let from = |id, pid, client: &str, launcher: &str| {
            let (client, launcher) = (client.to_owned(), launcher.to_owned());
            let origin = Some(wire::TaskOrigin { pid, client, launcher, ..Default::default() });
            wire::TaskState { origin, ..task(id, "connected") }
        };
        let tasks = [from(0, 4711, "grpc-c++/1.66.0", "Slurm 5"), from(1, 0, "", ""), task(2, "left")];
        let expected = "\
TASK  STATE      INCARNATION  PROCESS                             ERROR
0     connected  0            pid 4711, Slurm 5, grpc-c++/1.66.0
1     connected  0            -
2     left       0            -";
        assert_eq!(table(&views(&tasks), true, false), expected);
        assert!(!table(&views(&tasks), false, false).contains("PROCESS"), "nobody asked");
        let json = serde_json::to_value(views(&tasks)).expect("JSON");
        assert_eq!((&json[0]["origin"]["pid"], json[1].get("origin")), (&4711.into(), None));
    }

    #[test]
    fn when_a_task_was_heard_is_shown_and_unknown_after_a_change_of_leaders() {
        let heard = |id, heard_ms_ago| wire::TaskState { heard_ms_ago, ..task(id, "connected") };
        let tasks = [heard(0, Some(400)), heard(1, None), task(2, "left")];
        let expected = "\
TASK  STATE      INCARNATION  HEARD      ERROR
0     connected  0            0.4 s ago
1     connected  0            unknown
2     left       0            -";
        assert_eq!(table(&views(&tasks), false, true), expected);
        assert!(!table(&views(&tasks), true, false).contains("HEARD"), "the leader did not say it");
        assert!(!table(&views(&tasks[2..]), false, true).contains("HEARD"), "nobody is there");
    }

    #[test]
    fn where_a_task_stands_and_how_its_process_ended_is_shown() {
        let exited = wire::ProcessEnd { exit_code: Some(1), at_ms: 5, ..Default::default() };
        let ended = |id, standing: &str, error: &str| {
            let (error, end) = (error.to_owned(), Some(exited.clone()));
            wire::TaskState { error, end, ..task(id, standing) }
        };
        let tasks = [
            task(0, "never-came"),
            ended(1, "ended", ""),
            ended(2, "error", "boom"),
            ended(3, "ended", "it ended with exit code 1, as seen"),
            wire::TaskState { error: "old".into(), ..task(4, "") },
        ];
        let expected = "\
TASK  STATE       INCARNATION  ERROR
0     never-came  0
1     ended       0            its process ended with exit code 1
2     error       0            boom; its process ended with exit code 1
3     ended       0            it ended with exit code 1, as seen
4     error       0            old";
        assert_eq!(table(&views(&tasks), false, true), expected);
        let json = serde_json::to_value(views(&tasks)).expect("JSON");
        assert_eq!((&json[0]["state"], &json[1]["end"]["exit_code"]), (&"never-came".into(), &1.into()));
    }

    #[test]
    fn of_many_tasks_those_that_are_alike_are_told_in_ranges_and_the_odd_ones_first() {
        let tasks: Vec<_> =
            (0..10_000).map(|id| task(id, if id == 233 { "lost" } else { "connected" })).collect();
        let expected = "\
COUNT  STATE      TASKS            ERROR
1      lost       233
9999   connected  0-232, 234-9999
each in a row: --all; some of them: --state, --task";
        assert_eq!(table(&views(&tasks), false, true), expected);
        assert_eq!(table(&views(&tasks), true, false).lines().count(), 10_001);
        let apart: Vec<_> =
            (0..200).map(|id| wire::TaskState { error: id.to_string(), ..task(id, "error") }).collect();
        let text = table(&views(&apart), false, false);
        assert!(text.contains("\nand tasks with 136 other errors\n"), "{text}");
    }

    #[test]
    fn tasks_are_chosen_by_where_they_stand_and_by_number() {
        let range = |text: &str| text.parse::<TaskRange>();
        assert_eq!(range("4-9"), Ok(TaskRange(4..=9)));
        assert_eq!(range("7"), Ok(TaskRange(7..=7)));
        for wrong in ["", "x", "9-4", "-1", "1-", "99999999999"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
        let filter = TaskFilter {
            state: vec!["lost".into(), "ended".into()],
            tasks: vec![TaskRange(1..=2), TaskRange(7..=7)],
            all: false,
        };
        let chosen = [task(0, "lost"), task(1, "lost"), task(2, "connected"), task(7, "ended")];
        let ids: Vec<_> = chosen.iter().filter(|task| filter.has(task)).map(|task| task.task_id).collect();
        assert_eq!(ids, [1, 7]);
        assert!(chosen.iter().all(|task| TaskFilter::default().has(task)));
    }
}
