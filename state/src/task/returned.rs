//! Tasks that came back: that were connected in one life, and registered again in another.
//!
//! What a process wrote in an earlier life stands there when it writes it again. Nobody else's key is meant by that, so it
//! matters who asks.

use imbl::OrdMap;

use crate::ids::{Incarnation, LogIndex, TaskId};
use crate::job::turn::Turn;
use crate::level::Rule;

/// The lives of tasks that are not their first, the newest of each task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Returned(OrdMap<TaskId, Incarnation>);

impl Returned {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (TaskId, Incarnation)> + '_ {
        self.0.iter().map(|(task, incarnation)| (*task, *incarnation))
    }

    /// Whether this life of the task is not its first.
    pub(crate) fn has(&self, task: TaskId, incarnation: Incarnation) -> bool {
        self.0.get(&task) == Some(&incarnation)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Puts back one of a snapshot; `false` unless it comes after all others.
    pub(crate) fn restore(&mut self, task: TaskId, incarnation: Incarnation) -> bool {
        let ascending = self.0.get_max().is_none_or(|(last, _)| *last < task);
        self.0.insert(task, incarnation);
        ascending
    }
}

impl Turn<'_> {
    /// A registration is taken. In a job whose tasks may come back it is noted if it was here before, in another life.
    pub(crate) fn note_return(&mut self, task: TaskId, incarnation: Incarnation) {
        if !Rule::Returns.holds_at(self.level) || !self.job.recoverable(task) {
            return;
        }
        let record = self.job.tasks.get(task);
        let was_connected = record.since != LogIndex(0);
        if was_connected && record.incarnation != incarnation {
            self.job.returned.0.insert(task, incarnation);
        }
    }

    /// Whether this life of a task, which is its present one, is not its first in a job whose tasks may come back.
    pub(crate) fn came_back(&self, task: TaskId, incarnation: Incarnation) -> bool {
        self.job.tasks.contains(task)
            && self.job.recoverable(task)
            && self.job.tasks.get(task).incarnation == incarnation
            && self.job.returned.has(task, incarnation)
    }
}
