//! When a program that failed is begun again.

use std::time::Duration;

use tripod_backoff::Backoff;

use crate::view::{count, time};

/// Rest before a failed program is begun again, longer with each one that did not last.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
/// A program that ran for this long was well.
const LASTED: Duration = Duration::from_secs(120);

/// How often that may still be, and after which pause.
#[derive(Debug)]
pub(super) struct Restarts {
    made: u32,
    most: u32,
    backoff: Backoff,
}

impl Restarts {
    pub(super) fn of(most: u32) -> Self {
        Self { made: 0, most, backoff: BACKOFF }
    }

    /// The pause before the next beginning, if there is to be one. `ran`: how long the program did that failed.
    pub(super) fn next(&mut self, ran: Duration) -> Option<Duration> {
        if self.made == self.most {
            return None;
        }
        self.made += 1;
        if ran >= LASTED {
            self.backoff.reset();
        }
        Some(self.backoff.pause())
    }

    /// What is said before the beginning that [`Self::next`] allowed.
    pub(super) fn note(&self, job: &str, task: u32, how: &str, pause: Duration) -> String {
        let Self { made, most, .. } = self;
        let pause = time::seconds(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
        format!("task {task} of job `{job}` {how}; it is begun again in {pause} (restart {made} of {most})")
    }

    /// What is said of a program that failed once too often.
    pub(super) fn given_up(&self) -> Option<String> {
        (self.most > 0).then(|| {
            format!(
                "it is not begun again after {}, which are all that --restarts allows",
                count(self.most, "restart")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pause_is_longer_until_a_program_lasts_and_there_are_no_more_than_asked_for() {
        let mut restarts = Restarts::of(8);
        let mut next = |ran| restarts.next(Duration::from_secs(ran)).map(|pause| pause.as_secs());
        let pauses = [next(0), next(1), next(0), next(0), next(0), next(0), next(120), next(0)];
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 1, 2].map(Some));
        assert_eq!(next(120), None);
        assert_eq!(Restarts::of(0).next(LASTED), None);
    }

    #[test]
    fn a_restart_is_told_with_its_reason_and_its_number() {
        let mut restarts = Restarts::of(3);
        let pause = restarts.next(Duration::ZERO).expect("the first");
        assert_eq!(
            restarts.note("t", 0, "was ended by SIGKILL (exit status 137)", pause),
            "task 0 of job `t` was ended by SIGKILL (exit status 137); it is begun again in 1 s (restart 1 of 3)"
        );
        assert!(Restarts::of(0).given_up().is_none() && restarts.given_up().is_some());
    }
}
