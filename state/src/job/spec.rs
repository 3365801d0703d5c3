//! What may stand in a job's specification.

use crate::fault::Fault;
use crate::ids::{DurationMs, JobName};
use crate::job::Spec;
use crate::limits::{JOB_NAME_CHARS_MAX, JOB_TASKS_MAX, TIMEOUT_MS_MAX};

/// Below this a task that is only busy would be taken for dead.
const HEARTBEAT_TIMEOUT_MS_MIN: u64 = 1_000;

impl Spec {
    /// Whether every value is within its bounds.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if !(1..=JOB_TASKS_MAX).contains(&self.tasks) {
            return Err(invalid("tasks", format!("must be 1 to {JOB_TASKS_MAX}, not {}", self.tasks)));
        }
        within("heartbeat_timeout_ms", self.heartbeat_timeout_ms, HEARTBEAT_TIMEOUT_MS_MIN)?;
        within("shutdown_timeout_ms", self.shutdown_timeout_ms, 0)?;
        within("register_timeout_ms", self.register_timeout_ms, 0)
    }
}

/// The text as a job name, if it is one.
pub(crate) fn check_name(text: &str) -> Result<JobName, Fault> {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    let first_legal = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    if text.len() <= JOB_NAME_CHARS_MAX && first_legal && text.chars().all(legal) {
        Ok(JobName::from(text))
    } else {
        Err(Fault::JobNameInvalid { name: shown(text) })
    }
}

/// As much of a wrong name as an error should repeat.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(JOB_NAME_CHARS_MAX).collect()
}

fn within(field: &str, value: DurationMs, min: u64) -> Result<(), Fault> {
    if (min..=TIMEOUT_MS_MAX).contains(&value.0) {
        Ok(())
    } else {
        Err(invalid(field, format!("must be {min} to {TIMEOUT_MS_MAX}, not {value}")))
    }
}

fn invalid(field: &str, reason: String) -> Fault {
    Fault::JobSpecInvalid { field: field.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule() {
        let longest = "a".repeat(JOB_NAME_CHARS_MAX);
        for name in ["a", "0", "w-1_x.y", "default", longest.as_str()] {
            assert_eq!(check_name(name), Ok(JobName::from(name)));
        }
        let too_long = "a".repeat(JOB_NAME_CHARS_MAX + 1);
        for name in ["", "-a", ".a", "_a", "A", "a b", "a/b", "ä", "aä", too_long.as_str()] {
            assert_eq!(check_name(name), Err(Fault::JobNameInvalid { name: shown(name) }), "{name}");
        }
    }

    #[test]
    fn every_bound_of_a_spec_is_checked() {
        let field = |spec: Spec| match spec.check() {
            Err(Fault::JobSpecInvalid { field, .. }) => field,
            other => panic!("{other:?}"),
        };
        let good = Spec::of_tasks(2);
        assert_eq!(good.check(), Ok(()));
        assert_eq!(field(Spec { tasks: 0, ..good.clone() }), "tasks");
        assert_eq!(field(Spec { tasks: JOB_TASKS_MAX + 1, ..good.clone() }), "tasks");
        let short = DurationMs(HEARTBEAT_TIMEOUT_MS_MIN - 1);
        let long = DurationMs(TIMEOUT_MS_MAX + 1);
        assert_eq!(field(Spec { heartbeat_timeout_ms: short, ..good.clone() }), "heartbeat_timeout_ms");
        assert_eq!(field(Spec { heartbeat_timeout_ms: long, ..good.clone() }), "heartbeat_timeout_ms");
        assert_eq!(field(Spec { shutdown_timeout_ms: long, ..good.clone() }), "shutdown_timeout_ms");
        assert_eq!(field(Spec { register_timeout_ms: long, ..good }), "register_timeout_ms");
    }
}
