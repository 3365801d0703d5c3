//! Why a program may have failed, as far as the cluster and the agent know, on one screen.

mod job;

use std::fmt::Write as _;

use tripod_client::{Error, wire};

use crate::launch::log_tail::LogTail;
use crate::output;
use crate::view::time;

/// What ended, and who could know more.
pub(crate) struct Question<'a> {
    pub(crate) job: &'a str,
    pub(crate) task: u32,
    pub(crate) how: String,
    /// The last line that the program wrote to its standard error, if that is known.
    pub(crate) last_line: Option<String>,
    /// What became of the others: words behind their name.
    pub(crate) told: String,
    pub(crate) log: &'a LogTail,
}

impl Question<'_> {
    /// Everything that is known. `job`: what the cluster told of it.
    pub(crate) fn answer(&self, job: Result<Option<wire::Job>, Error>) -> String {
        self.screen(job, time::now_ms())
    }

    fn screen(&self, job: Result<Option<wire::Job>, Error>, now_ms: u64) -> String {
        let Self { job: name, task, how, last_line, told, log } = self;
        let mut screen = Screen { text: format!("tripod run: task {task} of job `{name}` {how}\n") };
        if let Some(last_line) = last_line {
            screen.line("last line", &job::shortened(last_line));
        }
        match job {
            Ok(Some(job)) => job::tell(&mut screen, &job, *task, now_ms),
            Ok(None) => screen.line("job", "is gone: somebody has deleted it"),
            Err(error) => screen.line("job", &format!("nobody could be asked: {error}")),
        }
        screen.line("the others", &job::shortened(told));
        if log.outages() > 0 {
            let ends = format!("{} outage(s) of the cluster; its log ends with", log.outages());
            screen.line("agent", &ends);
            for entry in log.lines() {
                screen.line("", &entry);
            }
        }
        screen.line("next", &format!("tripod job show {name}"));
        screen.text
    }
}

/// Lines, each about something.
struct Screen {
    text: String,
}

impl Screen {
    fn line(&mut self, about: &str, what: &str) {
        writeln!(self.text, "  {about:<10} {}", output::text(what)).expect("a text can be written to");
    }
}

#[cfg(test)]
pub(super) fn screen_of(job: wire::Job, now_ms: u64) -> String {
    tests::question(&LogTail::default()).screen(Ok(Some(job)), now_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn question(log: &LogTail) -> Question<'_> {
        let (how, last_line) = ("ended with exit status 1".to_owned(), Some("boom".to_owned()));
        Question { job: "train", task: 1, how, last_line, told: "were told at once: boom".into(), log }
    }

    fn screen(job: Result<Option<wire::Job>, Error>, log: &LogTail) -> String {
        question(log).screen(job, 9_000)
    }

    #[test]
    fn a_job_that_is_gone_is_told() {
        assert!(screen(Ok(None), &LogTail::default()).contains("is gone"));
    }

    #[test]
    fn what_the_job_knows_stands_between_the_end_and_the_next_command() {
        let expected = "\
tripod run: task 1 of job `train` ended with exit status 1
  last line  boom
  tasks      all were connected, and none in error
  the others were told at once: boom
  next       tripod job show train
";
        assert_eq!(screen(Ok(Some(wire::Job::default())), &LogTail::default()), expected);
    }

    #[tokio::test]
    async fn a_large_job_in_ruins_still_fits_on_one_screen() {
        let log = LogTail::default();
        log.clone().follow("INFO outage begins\n".repeat(100).as_bytes(), false).await;
        let text = screen(Ok(Some(job::tests::in_ruins())), &log);
        assert!(text.lines().count() <= 24, "{text}");
    }
}
