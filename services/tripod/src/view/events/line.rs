//! One event.

use serde::Serialize;
use tripod_client::wire;

use crate::args::moment::{day_and_time, time_of_day};
use crate::output;
use crate::view::time::seconds;

/// Ranges of tasks that a line shows; all are in JSON.
const RANGES_SHOWN: usize = 16;

/// Kinds of events that explain others.
const CAUSES: [&str; 5] = ["ended", "given-up", "failed", "error-latched", "barrier-failed"];

/// An event as JSON has it.
#[derive(Debug, Serialize)]
pub(crate) struct EventLine {
    /// Empty: the cluster's own.
    job: String,
    number: u64,
    index: u64,
    sequence: u32,
    at_ms: u64,
    until_ms: u64,
    kind: String,
    milestone: bool,
    /// First and last of each range.
    tasks: Vec<(i32, i32)>,
    times: u32,
    name: String,
    text: String,
    /// What happened, in a sentence.
    said: String,
    /// The node that has seen it itself; absent: it is of a job or the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u64>,
}

impl EventLine {
    pub(crate) fn of(event: &wire::Event) -> Self {
        let first = event.first.unwrap_or_default();
        Self {
            job: event.job.clone(),
            number: event.number,
            index: first.index,
            sequence: first.sequence,
            at_ms: event.at_ms,
            until_ms: event.until_ms,
            kind: event.kind.clone(),
            milestone: event.milestone,
            tasks: event.tasks.iter().map(|range| (range.first, range.last)).collect(),
            times: event.times,
            name: event.name.clone(),
            text: event.text.clone(),
            said: said(event),
            node: None,
        }
    }

    /// Whether something went wrong by itself, and not because of what had gone wrong before.
    pub(crate) fn is_cause(&self) -> bool {
        CAUSES.contains(&self.kind.as_str())
    }

    /// The same with the node that has seen it itself.
    pub(crate) fn seen_by(self, node: Option<u64>) -> Self {
        Self { node, ..self }
    }

    /// One line; `by_job`: with the day and the job.
    pub(crate) fn render(&self, by_job: bool) -> String {
        let said = output::text(&self.said);
        if by_job {
            let place = match self.node {
                Some(node) => format!("(node {node})"),
                None if self.job.is_empty() => "(cluster)".to_owned(),
                None => output::text(&self.job).into_owned(),
            };
            // A kind of a node is a word of that node.
            return format!(
                "{}  {place:<16} {:<21} {said}",
                day_and_time(self.at_ms),
                output::text(&self.kind)
            );
        }
        format!("{}  {:<21} {said}", time_of_day(self.at_ms), self.kind)
    }
}

/// Tasks as ranges: `0-232,234`.
pub(crate) fn ranges(tasks: &[wire::TaskRange]) -> String {
    let one = |range: &wire::TaskRange| match range.first == range.last {
        true => range.first.to_string(),
        false => format!("{}-{}", range.first, range.last),
    };
    let shown: Vec<String> = tasks.iter().take(RANGES_SHOWN).map(one).collect();
    let more = tasks.len().saturating_sub(RANGES_SHOWN);
    let more = if more > 0 { format!(" and {more} ranges more") } else { String::new() };
    shown.join(",") + &more
}

/// What happened, in a sentence without a full stop.
fn said(event: &wire::Event) -> String {
    let (name, text, tasks) = (&event.name, &event.text, ranges(&event.tasks));
    let detail = event.detail.unwrap_or_default();
    let tasks = if event.tasks.is_empty() { String::new() } else { format!("task {tasks}") };
    let others = |what: &str| match event.times {
        0 | 1 => String::new(),
        times => format!(" (the first of {times} {what})"),
    };
    match event.kind.as_str() {
        "job-created" => format!("job `{name}` of {} tasks", detail.tasks.unwrap_or_default()),
        "job-noted" if text.is_empty() => "the note was taken away".to_owned(),
        "job-noted" => format!("note: {text}"),
        "job-deleted" => "the job was deleted".to_owned(),
        "registered" => format!("{tasks} came and waits for the others"),
        "new-life" => format!("{tasks} came again, as another life"),
        "connected" => format!("{tasks} takes part"),
        "left" => format!("{tasks} left"),
        // What it says is of the first one, and which of the tasks that was it does not say.
        "ended" if event.times > 1 => format!("the first of {} processes ({tasks}) {text}", event.times),
        "ended" => format!("the process of {tasks} {text}"),
        "given-up" => format!("{tasks} was silent for too long"),
        "failed" => format!("{tasks} failed: {text}{}", others("failures")),
        "ended-by-others" => format!("{tasks} was ended because of others: {text}"),
        "error-latched" => format!("tasks that ask for errors are told: {text}{}", others("errors")),
        "barrier-opened" => format!(
            "`{name}` by task {}, for at most {}{}",
            detail.first_task.unwrap_or_default(),
            seconds(detail.timeout_ms.unwrap_or_default()),
            again(event.times)
        ),
        "barrier-passed" => format!(
            "`{name}`: {} tasks, the last one {} after {}{}",
            detail.tasks.unwrap_or_default(),
            detail.last_task.unwrap_or_default(),
            seconds(detail.after_ms.unwrap_or_default()),
            again(event.times)
        ),
        "barrier-failed" => format!("`{name}`: {text}{}", others("barriers")),
        "term-changed" => {
            format!(
                "term {}: a leader was elected, and began its timers again",
                detail.term.unwrap_or_default()
            )
        }
        "drained" if detail.drained == Some(true) => {
            format!("node {} is drained", detail.node_id.unwrap_or_default())
        }
        "drained" => format!("node {} serves again", detail.node_id.unwrap_or_default()),
        "level-changed" => {
            format!(
                "level {} to {}",
                detail.level_from.unwrap_or_default(),
                detail.level_to.unwrap_or_default()
            )
        }
        "worker-lost" => format!("worker {name}: {text}{}", others("workers")),
        "scheduler-task-failed" => format!("a task of `{name}` failed: {text}{}", others("tasks")),
        "object-rebuilt" => {
            format!("a task of `{name}` runs again, as its results were lost{}", again(event.times))
        }
        _ => seen_by_node(event).unwrap_or_else(|| {
            // What a newer build tells.
            let parts = [name.as_str(), text, &tasks];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
        }),
    }
}

/// The same of what a node has seen itself.
fn seen_by_node(event: &wire::Event) -> Option<String> {
    let (name, text) = (&event.name, &event.text);
    Some(match event.kind.as_str() {
        "leader-known" | "leader-gone" => format!("{name} {text}"),
        "calls-refused" | "calls-failed" | "callers-gone" => {
            format!("{} of {name}: {text}", count(event.times, "call"))
        }
        "connections-refused" => format!("{} {text}", count(event.times, "connection")),
        "turns-given-up" => format!("{}: {text}", count(event.times, "call")),
        "paused" | "contact-lost" | "contact-found" | "disk-stalled" | "disk-answers" if event.times > 1 => {
            format!("{text} ({} times within minutes)", event.times)
        }
        _ => return None,
    })
}

fn count(times: u32, noun: &str) -> String {
    format!("{times} {noun}{}", if times == 1 { "" } else { "s" })
}

fn again(times: u32) -> String {
    if times > 1 { format!(", {times} times within a second") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str) -> wire::Event {
        wire::Event {
            kind: kind.into(),
            at_ms: 1_795_806_659_007,
            tasks: vec![wire::TaskRange { first: 0, last: 1 }, wire::TaskRange { first: 3, last: 3 }],
            times: 3,
            text: "was ended by SIGKILL".into(),
            ..wire::Event::default()
        }
    }

    #[test]
    fn a_line_says_when_what_and_of_whom() {
        let line = EventLine::of(&event("ended")).render(false);
        assert_eq!(
            line,
            "19:10:59.007  ended                 the first of 3 processes (task 0-1,3) was ended by SIGKILL"
        );
        let line = EventLine::of(&event("error-latched")).render(false);
        let expected = "19:10:59.007  error-latched         tasks that ask for errors are told: was ended by SIGKILL \
                        (the first of 3 errors)";
        assert_eq!(line, expected);
        let line = EventLine::of(&event("given-up")).render(true);
        let expected =
            "2026-11-27 19:10:59  (cluster)        given-up              task 0-1,3 was silent for too long";
        assert_eq!(line, expected);
    }

    #[test]
    fn no_text_of_a_client_is_an_order_to_the_terminal() {
        let event = wire::Event { text: "a\u{1b}[31m\nb".into(), ..event("failed") };
        let line = EventLine::of(&event).render(false);
        assert!(!line.contains('\u{1b}') && !line.contains('\n'), "{line}");
    }

    #[test]
    fn what_a_node_has_seen_is_told_with_its_number() {
        let of = |kind: &str, name: &str, text: &str, times| {
            let (name, text) = (name.to_owned(), text.to_owned());
            let event = wire::Event { name, text, times, tasks: Vec::new(), ..event(kind) };
            EventLine { node: Some(2), ..EventLine::of(&event) }
        };
        let line = of("leader-known", "node 3", "leads in term 7", 1);
        let expected = "2026-11-27 19:10:59  (node 2)         leader-known          node 3 leads in term 7";
        assert_eq!(line.render(true), expected);
        assert_eq!(of("calls-failed", "/a/B", "for its trouble", 1).said, "1 call of /a/B: for its trouble");
        assert_eq!(of("calls-failed", "/a/B", "x", 3).said, "3 calls of /a/B: x");
        assert_eq!(of("disk-answers", "", "after 3.0 s", 2).said, "after 3.0 s (2 times within minutes)");
        assert_eq!(serde_json::to_value(line).expect("JSON")["node"], 2);
    }

    #[test]
    fn a_kind_of_a_newer_build_is_shown_as_it_is() {
        let event = wire::Event { name: "x".into(), ..event("something-new") };
        assert_eq!(EventLine::of(&event).said, "x was ended by SIGKILL task 0-1,3");
    }
}
