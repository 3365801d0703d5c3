//! What may stand in a job's specification.

use crate::fault::Fault;
use crate::ids::{DurationMs, JobName, TaskId};
use crate::job::Spec;
use crate::limits::{
    ADDRESS_BYTES_MAX, HEARTBEAT_TIMEOUT_MS_MIN, JOB_NAME_CHARS_MAX, JOB_TASKS_MAX, TIMEOUT_MS_MAX,
};

impl Spec {
    /// Whether every value is within its bounds.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if !(1..=JOB_TASKS_MAX).contains(&self.tasks) {
            return Err(invalid("tasks", format!("must be 1 to {JOB_TASKS_MAX}, not {}", self.tasks)));
        }
        within("heartbeat_timeout_ms", self.heartbeat_timeout_ms, HEARTBEAT_TIMEOUT_MS_MIN)?;
        within("shutdown_timeout_ms", self.shutdown_timeout_ms, 0)?;
        within("register_timeout_ms", self.register_timeout_ms, 0)?;
        self.check_groups()?;
        self.check_listeners()
    }

    /// The task that is number `index` of the group, or of the job if it has no groups.
    #[must_use]
    pub fn task(&self, group: &str, index: i32) -> Option<TaskId> {
        if self.groups.is_empty() {
            return Some(TaskId(index));
        }
        let mut first = 0;
        for candidate in &self.groups {
            let tasks = i32::try_from(candidate.tasks).ok()?;
            if candidate.name == group {
                return (0..tasks).contains(&index).then_some(TaskId(first + index));
            }
            first += tasks;
        }
        None
    }

    /// The group of a task and its number there; `None` if the job has no groups, or no such task.
    #[must_use]
    pub fn group_of(&self, task: TaskId) -> Option<(&str, i32)> {
        let mut first = 0;
        for group in &self.groups {
            let tasks = i32::try_from(group.tasks).ok()?;
            if (first..first + tasks).contains(&task.0) {
                return Some((&group.name, task.0 - first));
            }
            first += tasks;
        }
        None
    }

    fn check_groups(&self) -> Result<(), Fault> {
        if self.groups.is_empty() {
            return Ok(());
        }
        let legal = |name: &str| {
            (1..=JOB_NAME_CHARS_MAX).contains(&name.len())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        };
        for (place, group) in self.groups.iter().enumerate() {
            if !legal(&group.name) {
                let name = shown(&group.name);
                return Err(invalid("groups", format!("`{name}` is no name of letters, digits, - and _")));
            }
            if self.groups[..place].iter().any(|earlier| earlier.name == group.name) {
                return Err(invalid("groups", format!("`{}` stands twice", group.name)));
            }
            if group.tasks == 0 {
                return Err(invalid("groups", format!("`{}` has no tasks", group.name)));
            }
        }
        let sum: u64 = self.groups.iter().map(|group| u64::from(group.tasks)).sum();
        if sum == u64::from(self.tasks) {
            Ok(())
        } else {
            Err(invalid("groups", format!("have {sum} tasks together, the job has {}", self.tasks)))
        }
    }

    fn check_listeners(&self) -> Result<(), Fault> {
        let mut last = None;
        for listener in &self.listeners {
            let task = listener.task;
            if !u32::try_from(task.0).is_ok_and(|id| id < self.tasks) {
                return Err(invalid("listeners", format!("the job has no task {task}")));
            }
            if last.is_some_and(|last| last >= task) {
                return Err(invalid("listeners", format!("task {task} stands twice or out of order")));
            }
            if listener.address.is_empty() || listener.address.len() > ADDRESS_BYTES_MAX {
                return Err(invalid("listeners", format!("task {task} has no usable address")));
            }
            last = Some(task);
        }
        Ok(())
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
    use crate::job::{Group, Listener};

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

    fn group(name: &str, tasks: u32) -> Group {
        Group { name: name.to_owned(), tasks }
    }

    #[test]
    fn groups_number_their_tasks_in_a_row() {
        let groups = vec![group("chief", 1), group("worker", 2)];
        let spec = Spec { groups, ..Spec::of_tasks(3) };
        assert_eq!(spec.check(), Ok(()));
        assert_eq!(spec.task("chief", 0), Some(TaskId(0)));
        assert_eq!(spec.task("worker", 1), Some(TaskId(2)));
        for (name, index) in [("chief", 1), ("worker", 2), ("worker", -1), ("ps", 0), ("", 0)] {
            assert_eq!(spec.task(name, index), None, "{name}:{index}");
        }
        assert_eq!(spec.group_of(TaskId(2)), Some(("worker", 1)));
        assert_eq!(spec.group_of(TaskId(3)), None);
        assert_eq!(Spec::of_tasks(3).task("anything", 7), Some(TaskId(7)), "the task table judges it");
    }

    #[test]
    fn groups_and_listeners_that_contradict_the_job_are_refused() {
        let reason = |spec: Spec| match spec.check() {
            Err(Fault::JobSpecInvalid { reason, .. }) => reason,
            other => panic!("{other:?}"),
        };
        let groups = |groups: Vec<Group>| Spec { groups, ..Spec::of_tasks(2) };
        assert_eq!(reason(groups(vec![group("a", 1)])), "have 1 tasks together, the job has 2");
        assert_eq!(reason(groups(vec![group("a", 1), group("a", 1)])), "`a` stands twice");
        assert_eq!(reason(groups(vec![group("a", 2), group("b", 0)])), "`b` has no tasks");
        assert_eq!(reason(groups(vec![group("a/b", 2)])), "`a/b` is no name of letters, digits, - and _");
        let listen = |task: i32, address: &str| Listener { task: TaskId(task), address: address.to_owned() };
        let listeners = |listeners: Vec<Listener>| Spec { listeners, ..Spec::of_tasks(2) };
        assert_eq!(listeners(vec![listen(0, "a:1"), listen(1, "b:1")]).check(), Ok(()));
        assert_eq!(reason(listeners(vec![listen(2, "a:1")])), "the job has no task 2");
        assert_eq!(
            reason(listeners(vec![listen(1, "a:1"), listen(1, "b:1")])),
            "task 1 stands twice or out of order"
        );
        assert_eq!(reason(listeners(vec![listen(1, "")])), "task 1 has no usable address");
    }
}
