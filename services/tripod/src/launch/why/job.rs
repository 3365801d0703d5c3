//! What a job knows: who was lost, who is in error, who is not there, and who waits for whom.

use std::collections::BTreeMap;

use tripod_client::wire;

use super::Screen;
use crate::view::barrier::BarrierView;
use crate::view::job::rare_heartbeats;
use crate::view::{end, tasks, time};

/// Different errors that are told, each with its tasks.
const ERRORS_MAX: usize = 3;
/// Barriers that are told.
const BARRIERS_MAX: usize = 3;
/// Hosts that are told of the tasks of one line.
const HOSTS_MAX: usize = 4;
/// A text of the cluster beyond this many characters is cut.
const TEXT_CHARS_MAX: usize = 300;
/// Ways in which processes ended that are told.
const ENDS_MAX: usize = 3;
/// Where tasks stand that are not there, and what is said of them. The last is the word of nodes that know fewer.
const ABSENT: [(&str, &str); 4] = [
    ("never-came", "never came"),
    ("registering", "registering"),
    ("left", "left"),
    ("disconnected", "not there"),
];
/// The reason word of a task that was given up because nothing was heard of it.
const SILENT: &str = "task-silent";
/// The reason word of a task whose process has ended, as whoever started it has said.
const ENDED: &str = "task-ended";

/// Tells everything, what task `own` has seen first.
pub(super) fn tell(screen: &mut Screen, job: &wire::Job, own: u32, now_ms: u64) {
    if let Some(as_of) = &job.as_of {
        screen.line("job", &format!("nobody leads; as node {} remembers it:", as_of.node_id));
    }
    let ended: Vec<_> = standing(job, "ended").collect();
    let lost: Vec<_> = standing(job, "lost").collect();
    let failed: Vec<_> = standing(job, "error").collect();
    tell_ended(screen, &ended);
    if !lost.is_empty() {
        tell_lost(screen, job, &lost);
    }
    tell_failed(screen, &failed);
    let mut is_anybody_missing = false;
    for (word, label) in ABSENT {
        let missing: Vec<_> = standing(job, word).collect();
        if !missing.is_empty() {
            is_anybody_missing = true;
            screen.line(label, &tasks::named(&ids(&missing), missing.len()));
        }
    }
    if ended.is_empty() && lost.is_empty() && failed.is_empty() && !is_anybody_missing {
        screen.line("tasks", "all were connected, and none in error");
    }
    tell_barriers(screen, job, own, now_ms);
}

/// Those whose processes ended in the same way together.
fn tell_ended(screen: &mut Screen, ended: &[&wire::TaskState]) {
    let mut by_how = BTreeMap::<Option<String>, Vec<_>>::new();
    for task in ended {
        by_how.entry(task.end.as_ref().map(end::how)).or_default().push(task.task_id);
    }
    let ways = by_how.len();
    for (how, ids) in by_how.into_iter().take(ENDS_MAX) {
        let who = tasks::named(&ids, ids.len());
        let text = match how {
            Some(how) if ids.len() == 1 => format!("{who} {how}"),
            Some(how) => format!("{who}: each {how}"),
            None if ids.len() == 1 => format!("{who} has ended"),
            None => format!("{who} have ended"),
        };
        screen.line("ended", &format!("{text}, as `tripod run` saw"));
    }
    if ways > ENDS_MAX {
        screen.line("", &format!("and more in {} other ways", ways - ENDS_MAX));
    }
    tell_hosts(screen, ended);
}

/// Those that were given up after the same time together.
fn tell_lost(screen: &mut Screen, job: &wire::Job, lost: &[&wire::TaskState]) {
    let job_ms = job.spec.as_ref().map_or(0, |spec| spec.heartbeat_timeout_ms);
    let mut by_limit = BTreeMap::<_, Vec<_>>::new();
    for task in lost {
        by_limit.entry(task.silence_limit_ms.max(job_ms)).or_default().push(task.task_id);
    }
    for (limit_ms, ids) in by_limit {
        let were = if ids.len() == 1 { "was" } else { "were" };
        let silence = if limit_ms > job_ms { time::about(limit_ms) } else { time::seconds(limit_ms) };
        let lost = tasks::named(&ids, ids.len());
        screen.line("lost", &format!("{lost} {were} lost (no heartbeat for {silence})"));
        if limit_ms > job_ms {
            screen.line("", &rare_heartbeats(&ids, limit_ms, job_ms));
        }
    }
    tell_hosts(screen, lost);
}

/// Where they ran, as far as somebody has said it.
fn tell_hosts(screen: &mut Screen, tasks: &[&wire::TaskState]) {
    let known: Vec<_> = tasks.iter().filter(|task| !task.host.is_empty()).collect();
    let mut told: Vec<_> = known
        .iter()
        .take(HOSTS_MAX)
        .map(|task| format!("task {} ran on {}", task.task_id, task.host))
        .collect();
    if known.len() > HOSTS_MAX {
        told.push(format!("{} more elsewhere", known.len() - HOSTS_MAX));
    }
    if !told.is_empty() {
        screen.line("", &told.join(", "));
    }
}

/// Most tasks in error have the same one.
fn tell_failed(screen: &mut Screen, failed: &[&wire::TaskState]) {
    let mut errors: Vec<(&str, Vec<i32>)> = Vec::new();
    for task in failed {
        match errors.iter().position(|(error, _)| *error == task.error) {
            Some(known) => errors[known].1.push(task.task_id),
            None if errors.len() < ERRORS_MAX => errors.push((&task.error, vec![task.task_id])),
            None => {}
        }
    }
    let mut told = 0;
    for (error, with) in errors {
        told += with.len();
        screen.line("in error", &format!("{}: {}", tasks::named(&with, with.len()), shortened(error)));
    }
    if told < failed.len() {
        screen.line("", &format!("and {} more", failed.len() - told));
    }
}

fn tell_barriers(screen: &mut Screen, job: &wire::Job, own: u32, now_ms: u64) {
    let listed: Vec<_> = job.barriers.iter().map(BarrierView::of).collect();
    let waits_here = |barrier: &&BarrierView| i32::try_from(own).is_ok_and(|own| barrier.met(own));
    let (here, elsewhere): (Vec<_>, Vec<_>) = listed.iter().partition(waits_here);
    for (place, barrier) in here.iter().chain(&elsewhere).take(BARRIERS_MAX).enumerate() {
        screen.line(if place == 0 { "barriers" } else { "" }, &shortened(&barrier.waiting(now_ms)));
        if let Some(failed) = barrier.failed(now_ms) {
            screen.line("", &shortened(&failed));
        }
    }
    // What is open and not in the list is a place too many to be told of.
    let listed_open = listed.iter().filter(|barrier| barrier.is_open()).count();
    let unlisted = usize::try_from(job.barriers_open).unwrap_or(usize::MAX).saturating_sub(listed_open);
    let more = listed.len().saturating_sub(BARRIERS_MAX) + unlisted;
    if more > 0 {
        screen.line("", &format!("and {more} more"));
    }
}

/// Where a task stands, in the cluster's word for it, or that of nodes which know fewer.
fn word_of(task: &wire::TaskState) -> &str {
    match (task.standing.as_str(), task.state.as_str(), task.reason.as_str()) {
        ("", "error", ENDED) => "ended",
        ("", "error", SILENT) => "lost",
        ("", state, _) => state,
        (word, _, _) => word,
    }
}

fn standing<'a>(job: &'a wire::Job, word: &'a str) -> impl Iterator<Item = &'a wire::TaskState> {
    job.tasks.iter().filter(move |task| word_of(task) == word)
}

fn ids(tasks: &[&wire::TaskState]) -> Vec<i32> {
    tasks.iter().map(|task| task.task_id).collect()
}

/// Errors of tasks have several lines.
pub(super) fn shortened(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{} ...", &one_line[..end]),
        None => one_line,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn task(task_id: i32, state: &str, error: &str) -> wire::TaskState {
        wire::TaskState { task_id, state: state.into(), error: error.into(), ..Default::default() }
    }

    fn lost(task_id: i32) -> wire::TaskState {
        wire::TaskState { reason: SILENT.into(), ..task(task_id, "error", "silent") }
    }

    fn barrier(id: &str, arrived: &[i32], missing: &[i32]) -> wire::BarrierState {
        let sample = |tasks: &[i32]| wire::TaskSample {
            count: u32::try_from(tasks.len()).expect("few"),
            first: tasks.to_vec(),
        };
        let (arrived, missing) = (Some(sample(arrived)), Some(sample(missing)));
        let (opened_ms, timeout_ms) = (3_000, 60_000);
        wire::BarrierState { id: id.into(), arrived, missing, opened_ms, timeout_ms, ..Default::default() }
    }

    fn failed(barrier: wire::BarrierState, text: &str) -> wire::BarrierState {
        let failure = wire::BarrierFailure { at_ms: 8_000, reason: String::new(), text: text.into() };
        wire::BarrierState { failure: Some(failure), ..barrier }
    }

    fn told(job: &wire::Job) -> String {
        let mut screen = Screen { text: String::new() };
        tell(&mut screen, job, 1, 9_000);
        screen.text
    }

    /// A job that fills every part of the screen.
    pub(in super::super) fn in_ruins() -> wire::Job {
        let tasks = (0..10_000).map(|id| match id % 3 {
            0 => task(id, "error", &format!("{id} {}", "x".repeat(10_000))),
            1 => task(id, "disconnected", ""),
            _ => lost(id),
        });
        let barriers = (0..9).map(|id| failed(barrier(&id.to_string(), &[1], &[2]), "why"));
        wire::Job {
            tasks: tasks.collect(),
            barriers: barriers.collect(),
            barriers_open: 7,
            ..Default::default()
        }
    }

    #[test]
    fn a_task_that_was_lost_in_a_barrier_is_told_with_those_who_waited() {
        let unheard = "no task listens\nfor errors";
        let gone = wire::TaskState { host: "gpu-7".into(), ..lost(2) };
        let tasks = vec![task(0, "error", unheard), task(1, "error", unheard), gone];
        let spec = wire::JobSpec { heartbeat_timeout_ms: 10_000, ..Default::default() };
        let barriers = vec![failed(barrier("x", &[0, 1], &[2]), "task 2 failed")];
        let expected = "  lost       task 2 was lost (no heartbeat for 10 s)
             task 2 ran on gpu-7
  in error   tasks 0, 1: no task listens for errors
  barriers   barrier `x` waited for task 2; arrived: 0, 1
             failed 1 s ago: task 2 failed
";
        assert_eq!(told(&wire::Job { spec: Some(spec), tasks, barriers, ..Default::default() }), expected);
    }

    #[test]
    fn a_task_whose_end_was_seen_is_told_as_ended_and_not_as_silent() {
        let ended = |id| wire::TaskState { reason: ENDED.into(), host: format!("gpu-{id}"), ..lost(id) };
        let expected = "  ended      tasks 2, 3 have ended, as `tripod run` saw
             task 2 ran on gpu-2, task 3 ran on gpu-3
";
        assert_eq!(told(&wire::Job { tasks: vec![ended(2), ended(3)], ..Default::default() }), expected);
    }

    #[test]
    fn how_processes_ended_is_told_and_who_has_not_come_yet() {
        let killed = wire::ProcessEnd { signal: Some(9), out_of_memory: true, ..Default::default() };
        let exited = wire::ProcessEnd { exit_code: Some(3), ..Default::default() };
        let is = |id, standing: &str, end: Option<&wire::ProcessEnd>| wire::TaskState {
            standing: standing.into(),
            end: end.cloned(),
            ..task(id, "disconnected", "")
        };
        let tasks = vec![
            is(0, "ended", Some(&exited)),
            is(1, "ended", Some(&killed)),
            is(2, "ended", Some(&exited)),
            is(3, "never-came", None),
            is(4, "registering", None),
            is(5, "left", None),
        ];
        let expected = "  ended      tasks 0, 2: each ended with exit code 3, as `tripod run` saw
  ended      task 1 was ended by SIGKILL, out of memory, as `tripod run` saw
  never came task 3
  registering task 4
  left       task 5
";
        assert_eq!(told(&wire::Job { tasks, ..Default::default() }), expected);
    }

    #[test]
    fn n2_a_task_that_sends_heartbeats_rarely_is_told_with_both_times() {
        let slow = wire::TaskState { silence_limit_ms: 100_000, ..lost(2) };
        let spec = wire::JobSpec { heartbeat_timeout_ms: 10_000, ..Default::default() };
        let tasks = vec![wire::TaskState { silence_limit_ms: 10_000, ..lost(0) }, slow];
        let expected = "  lost       task 0 was lost (no heartbeat for 10 s)
  lost       task 2 was lost (no heartbeat for 100 s)
             task 2 sends one every 50 s, and the job's own timeout is 10 s: it is given up after 100 s
";
        assert_eq!(told(&wire::Job { spec: Some(spec), tasks, ..Default::default() }), expected);
    }

    #[test]
    fn who_is_not_there_and_who_waits_for_them_is_told() {
        let tasks = vec![task(1, "connected", ""), task(2, "disconnected", ""), task(3, "disconnected", "")];
        let barriers = vec![barrier("x", &[1], &[2, 3])];
        let expected = "  not there  tasks 2, 3
  barriers   barrier `x` waits for tasks 2, 3; arrived: 1; open for 6 s of 60 s
             and 4 more
";
        assert_eq!(told(&wire::Job { tasks, barriers, barriers_open: 5, ..Default::default() }), expected);
    }

    #[test]
    fn the_barriers_at_which_the_task_itself_waited_come_first() {
        let barriers = ["a", "b", "c", "d"].map(|id| barrier(id, &[if id == "d" { 1 } else { 0 }], &[2]));
        let text = told(&wire::Job { barriers: barriers.to_vec(), barriers_open: 4, ..Default::default() });
        let order: Vec<_> = text.lines().filter_map(|line| line.split('`').nth(1)).collect();
        assert_eq!(order, ["d", "a", "b"]);
        assert!(text.ends_with("and 1 more\n"), "{text}");
    }

    #[test]
    fn of_many_errors_the_first_are_told_and_the_others_counted() {
        let tasks = (0..10)
            .map(|id| task(id, "error", if id < 2 { "same" } else { ["a", "b", "c"][id as usize % 3] }));
        let text = told(&wire::Job { tasks: tasks.collect(), ..Default::default() });
        let expected = "  in error   tasks 0, 1: same
  in error   tasks 2, 5, 8: c
  in error   tasks 3, 6, 9: a
             and 2 more
";
        assert_eq!(text, expected);
    }
}
