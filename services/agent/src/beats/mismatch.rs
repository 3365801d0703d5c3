//! Says so when a program and its job do not agree on when a task is lost.

use std::time::Duration;

use parking_lot::Mutex;

/// Deadlines are rounded, to three digits: what differs by less than this part is the same.
const SAME_WITHIN_PERCENT: u32 = 5;

/// The timeout that was told of last.
#[derive(Debug, Default)]
pub(super) struct Mismatch(Mutex<Option<Duration>>);

impl Mismatch {
    /// A program waits `given` for the answer to a heartbeat, which is half of its timeout, and its job gives up after
    /// `job_timeout`. Tells it once, and again when it has changed.
    pub(super) fn look(&self, given: Duration, job_timeout: Duration) {
        if let Some(programs) = self.news(given, job_timeout) {
            tracing::warn!(
                program_ms = millis(programs),
                job_ms = millis(job_timeout),
                "the program sends a heartbeat every {}, and the job gives up after {}: the job waits for it as long as \
                 the program expects, {}; give both the same timeout (JAX: heartbeat_timeout_seconds of \
                 jax.distributed.initialize; the job: --heartbeat-timeout)",
                seconds(given),
                seconds(job_timeout),
                seconds(programs)
            );
        }
    }

    /// The program's timeout, if it is longer than the job's and was not told of yet.
    fn news(&self, given: Duration, job_timeout: Duration) -> Option<Duration> {
        let programs = given.saturating_mul(2);
        if !exceeds(programs, job_timeout) {
            return None;
        }
        let mut told = self.0.lock();
        let is_news = told.is_none_or(|told| exceeds(told, programs) || exceeds(programs, told));
        is_news.then(|| *told.insert(programs))
    }
}

fn exceeds(longer: Duration, shorter: Duration) -> bool {
    longer.saturating_sub(shorter) > longer / 100 * SAME_WITHIN_PERCENT
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// In whole seconds, or tenths of few.
fn seconds(duration: Duration) -> String {
    let tenths = (millis(duration).saturating_add(50)) / 100;
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole} s"),
        (whole, _) if whole >= 10 => format!("{} s", (tenths + 5) / 10),
        (whole, tenth) => format!("{whole}.{tenth} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn a_program_that_is_slower_than_its_job_is_told_of_once() {
        let mismatch = Mismatch::default();
        assert_eq!(mismatch.news(secs(5), secs(10)), None);
        assert_eq!(mismatch.news(secs(2), secs(10)), None, "a faster one does no harm");
        assert_eq!(mismatch.news(Duration::from_millis(5_040), secs(10)), None, "rounded");
        assert_eq!(mismatch.news(secs(50), secs(10)), Some(secs(100)));
        assert_eq!(mismatch.news(secs(50), secs(10)), None);
        assert_eq!(mismatch.news(secs(30), secs(10)), Some(secs(60)), "it has changed");
    }

    #[test]
    fn lengths_are_told_as_people_say_them() {
        let told = [50_000, 49_999, 2_500, 12_345, 100].map(|ms| seconds(Duration::from_millis(ms)));
        assert_eq!(told, ["50 s", "50 s", "2.5 s", "12 s", "0.1 s"]);
    }
}
