//! Why a program may have failed, as far as the cluster and the agent know, on one screen.

use std::fmt::Write as _;

use tripod_client::{Client, Error, wire};

use crate::launch::log_tail::LogTail;

/// Tasks in error that are named with their errors.
const ERRORS_MAX: usize = 4;
/// Ranges of missing tasks that are named.
const RANGES_MAX: usize = 8;
/// An error's text beyond this many characters is cut.
const ERROR_CHARS_MAX: usize = 300;

/// What ended, and who could know more.
pub(crate) struct Question<'a> {
    pub(crate) job: &'a str,
    pub(crate) task: u32,
    pub(crate) how: String,
    pub(crate) log: &'a LogTail,
}

impl Question<'_> {
    /// Asks the cluster and tells everything that is known.
    pub(crate) async fn answer(&self, client: &Client) -> String {
        self.screen(client.jobs().get(self.job).await)
    }

    fn screen(&self, job: Result<Option<wire::Job>, Error>) -> String {
        let Self { job: name, task, how, log } = self;
        let mut text = format!("tripod run: task {task} of job `{name}` {how}\n");
        match job {
            Ok(Some(job)) => of_job(&mut text, &job),
            Ok(None) => line(&mut text, "job", "is gone: somebody has deleted it"),
            Err(error) => line(&mut text, "job", &format!("nobody could be asked: {error}")),
        }
        if log.outages() > 0 {
            line(
                &mut text,
                "agent",
                &format!("{} outage(s) of the cluster; its log ends with", log.outages()),
            );
            for entry in log.lines() {
                line(&mut text, "", &entry);
            }
        }
        line(&mut text, "next", &format!("tripod job show {name}"));
        text
    }
}

fn of_job(text: &mut String, job: &wire::Job) {
    let failed: Vec<_> = job.tasks.iter().filter(|task| task.state == "error").collect();
    for task in failed.iter().take(ERRORS_MAX) {
        line(text, "in error", &format!("task {}: {}", task.task_id, shortened(&task.error)));
    }
    if failed.len() > ERRORS_MAX {
        line(text, "", &format!("and {} more", failed.len() - ERRORS_MAX));
    }
    let missing: Vec<_> =
        job.tasks.iter().filter(|task| task.state == "disconnected").map(|task| task.task_id).collect();
    if !missing.is_empty() {
        line(text, "not there", &format!("task {}", ranges(&missing)));
    }
    if failed.is_empty() && missing.is_empty() {
        line(text, "tasks", "all are connected, none is in error");
    }
    if job.barriers_open > 0 {
        line(text, "barriers", &format!("{} open: somebody waits", job.barriers_open));
    }
}

fn line(text: &mut String, about: &str, what: &str) {
    writeln!(text, "  {about:<10} {what}").expect("a text can be written to");
}

/// Errors of tasks have several lines.
fn shortened(error: &str) -> String {
    let one_line = error.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.char_indices().nth(ERROR_CHARS_MAX) {
        Some((end, _)) => format!("{} ...", &one_line[..end]),
        None => one_line,
    }
}

/// Ascending numbers as ranges: `0, 3-5`.
fn ranges(numbers: &[i32]) -> String {
    let mut found: Vec<(i32, i32)> = Vec::new();
    for &number in numbers {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => found.push((number, number)),
        }
    }
    let more = found.len().saturating_sub(RANGES_MAX);
    let shown = found
        .iter()
        .take(RANGES_MAX)
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    let shown = shown.collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(task_id: i32, state: &str, error: &str) -> wire::TaskState {
        wire::TaskState { task_id, state: state.into(), error: error.into(), ..Default::default() }
    }

    fn screen(job: Result<Option<wire::Job>, Error>, log: &LogTail) -> String {
        Question { job: "train", task: 1, how: "ended with exit status 1".into(), log }.screen(job)
    }

    #[test]
    fn who_is_lost_and_who_is_missing_is_told() {
        let tasks = vec![
            task(0, "error", "heartbeat timeout\nof task 0"),
            task(1, "connected", ""),
            task(2, "disconnected", ""),
            task(3, "disconnected", ""),
        ];
        let job = wire::Job { tasks, barriers_open: 1, ..Default::default() };
        let expected = "\
tripod run: task 1 of job `train` ended with exit status 1
  in error   task 0: heartbeat timeout of task 0
  not there  task 2-3
  barriers   1 open: somebody waits
  next       tripod job show train
";
        assert_eq!(screen(Ok(Some(job)), &LogTail::default()), expected);
    }

    #[tokio::test]
    async fn a_large_job_in_ruins_still_fits_on_one_screen() {
        let log = LogTail::default();
        log.clone().follow("INFO outage begins\n".repeat(100).as_bytes(), false).await;
        let state = |id: i32| if id % 2 == 0 { "error" } else { "disconnected" };
        let tasks = (0..10_000).map(|id| task(id, state(id), &"x".repeat(10_000))).collect();
        let text = screen(Ok(Some(wire::Job { tasks, barriers_open: 9, ..Default::default() })), &log);
        assert!(text.lines().count() <= 24, "{text}");
        assert!(
            text.contains("and 4996 more") && text.contains("1, 3, 5, 7, 9, 11, 13, 15 and more"),
            "{text}"
        );
    }

    #[test]
    fn a_job_that_is_gone_is_told() {
        assert!(screen(Ok(None), &LogTail::default()).contains("is gone"));
    }

    #[test]
    fn neighbours_become_ranges() {
        assert_eq!(ranges(&[1]), "1");
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
    }
}
