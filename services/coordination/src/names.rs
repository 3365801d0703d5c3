//! By which names a caller knows the tasks of its job, and how it is spoken to.

use std::fmt;
use std::sync::Arc;

use tripod_state::ids::TaskId;
use tripod_state::job::Spec;

use crate::dialect::Dialect;

/// A task's name in a job with groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) group: String,
    /// Its number in the group.
    pub(crate) index: i32,
}

/// The names of a job's tasks, where they have others than their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// The groups of a job that has some.
    spec: Option<Arc<Spec>>,
    /// Whom the caller named and the job does not have. The state machine knows them by numbers that no
    /// task has, -1 and down, so that its rules for unknown tasks hold for them, too.
    strangers: Vec<Name>,
}

/// How a caller is spoken to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Voice<'a> {
    pub(crate) dialect: Dialect,
    names: &'a Names,
}

static NUMBERS: Names = Names { spec: None, strangers: Vec::new() };

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/job:{}/replica:0/task:{}", self.group, self.index)
    }
}

impl Names {
    /// Those that the job's specification gives.
    pub(crate) fn of(spec: &Spec) -> Self {
        // Only the groups matter, and a call of one task must not copy what the job knows of all others.
        let grouped = || Arc::new(Spec { groups: spec.groups.clone(), ..Spec::of_tasks(spec.tasks) });
        Self { spec: (!spec.groups.is_empty()).then(grouped), strangers: Vec::new() }
    }

    /// The number of a task that the caller names. In a job without groups it answers to any name.
    pub(crate) fn number(&mut self, group: &str, index: i32) -> TaskId {
        let Some(spec) = &self.spec else { return TaskId(index) };
        spec.task(group, index).unwrap_or_else(|| self.stranger(group, index))
    }

    /// A sender may stand in its own list, so the first one is recognised.
    fn stranger(&mut self, group: &str, index: i32) -> TaskId {
        let name = Name { group: group.to_owned(), index };
        if self.strangers.first() == Some(&name) {
            return TaskId(-1);
        }
        self.strangers.push(name);
        // A message has not as many bytes as this could count.
        TaskId(i32::try_from(self.strangers.len()).map_or(i32::MIN, |count| -count))
    }

    fn name(&self, task: TaskId) -> Option<Name> {
        let spec = self.spec.as_ref()?;
        if let Some((group, index)) = spec.group_of(task) {
            return Some(Name { group: group.to_owned(), index });
        }
        let place = usize::try_from(task.0.checked_add(1)?.checked_neg()?).ok()?;
        self.strangers.get(place).cloned()
    }
}

impl<'a> Voice<'a> {
    pub(crate) fn new(dialect: Dialect, names: &'a Names) -> Self {
        Self { dialect, names }
    }

    /// With numbers for names.
    pub(crate) fn plain(dialect: Dialect) -> Self {
        Self { dialect, names: &NUMBERS }
    }

    /// The task as texts name it.
    pub(crate) fn task(self, task: TaskId) -> String {
        self.name(task).map_or_else(|| task.to_string(), |name| name.to_string())
    }

    /// The task with the word that some texts put before it.
    pub(crate) fn labelled(self, task: TaskId) -> String {
        self.name(task).map_or_else(|| format!("task={task}"), |name| format!("task_name={name}"))
    }

    /// Whether the task is of that group. `None`: the job has none.
    pub(crate) fn is_in(self, task: TaskId, group: &str) -> Option<bool> {
        let spec = self.names.spec.as_ref()?;
        Some(spec.group_of(task).is_some_and(|(own, _)| own == group))
    }

    /// The task's name, if it has one besides its number.
    pub(crate) fn name(self, task: TaskId) -> Option<Name> {
        self.names.name(task)
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::job::Group;

    use super::*;

    fn grouped() -> Names {
        let group = |name: &str, tasks| Group { name: name.to_owned(), tasks };
        Names::of(&Spec { groups: vec![group("chief", 1), group("worker", 2)], ..Spec::of_tasks(3) })
    }

    #[test]
    fn a_job_without_groups_goes_by_numbers() {
        let mut names = Names::of(&Spec::of_tasks(2));
        assert_eq!(names.number("worker", 7), TaskId(7));
        let voice = Voice::new(Dialect::T, &names);
        assert_eq!(voice.is_in(TaskId(0), "worker"), None);
        assert_eq!((voice.task(TaskId(1)), voice.labelled(TaskId(1))), ("1".to_owned(), "task=1".to_owned()));
        assert_eq!(Voice::plain(Dialect::N).name(TaskId(0)), None);
    }

    #[test]
    fn a_task_of_a_group_has_a_name() {
        let mut names = grouped();
        assert_eq!(names.number("worker", 1), TaskId(2));
        let voice = Voice::new(Dialect::T, &names);
        assert_eq!(voice.is_in(TaskId(2), "worker"), Some(true));
        assert_eq!(voice.is_in(TaskId(0), "worker"), Some(false));
        assert_eq!(voice.task(TaskId(2)), "/job:worker/replica:0/task:1");
        assert_eq!(voice.labelled(TaskId(0)), "task_name=/job:chief/replica:0/task:0");
        assert_eq!(voice.task(TaskId(3)), "3", "no task of the job, and nobody named it");
    }

    #[test]
    fn strangers_keep_their_names() {
        let mut names = grouped();
        assert_eq!(names.number("ps", 4), TaskId(-1));
        assert_eq!(names.number("worker", -1), TaskId(-2));
        assert_eq!(names.number("ps", 4), TaskId(-1), "the sender, in its own list");
        let voice = Voice::new(Dialect::T, &names);
        assert_eq!(voice.task(TaskId(-1)), "/job:ps/replica:0/task:4");
        assert_eq!(voice.task(TaskId(-2)), "/job:worker/replica:0/task:-1");
        assert_eq!(voice.task(TaskId(-3)), "-3");
        assert_eq!(voice.task(TaskId(i32::MAX)), i32::MAX.to_string());
        assert_eq!(voice.task(TaskId(i32::MIN)), i32::MIN.to_string());
    }
}
