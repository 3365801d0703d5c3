//! What whoever started the processes of tasks says of them: on which host each runs, and that it has ended.

use std::sync::Arc;

use imbl::OrdMap;

use crate::command::{Answer, Reply};
use crate::fault::{Asked, Fault};
use crate::ids::{Incarnation, TaskId};
use crate::job::turn::Turn;
use crate::task::{Phase, Process};

/// Bytes of a host's name; those of the DNS have at most 253 characters.
pub const HOST_BYTES_MAX: usize = 255;

/// One process: the life of a task that it is, and what was said of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Known {
    incarnation: Incarnation,
    /// Empty: nobody has said it.
    host: Arc<str>,
    ended: bool,
}

/// The processes of the tasks of a job of which something was said, the newest of each task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Processes(OrdMap<TaskId, Known>);

impl Processes {
    pub(crate) const ELEMENT_BYTES: usize = size_of::<(TaskId, Known)>();

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (TaskId, Incarnation, Process<'_>)> + '_ {
        self.0.iter().map(|(task, known)| (*task, known.incarnation, known.shown()))
    }

    /// That of this life of the task.
    pub(crate) fn of(&self, task: TaskId, incarnation: Incarnation) -> Option<Process<'_>> {
        self.0.get(&task).filter(|known| known.incarnation == incarnation).map(Known::shown)
    }

    /// Another life begins.
    pub(crate) fn forget(&mut self, task: TaskId) {
        self.0.remove(&task);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Puts back one of a snapshot; `false` unless it comes after all others and says something.
    pub(crate) fn restore(&mut self, task: TaskId, incarnation: Incarnation, process: Process<'_>) -> bool {
        let ascending = self.0.get_max().is_none_or(|(last, _)| *last < task);
        let Process { host, ended } = process;
        self.0.insert(task, Known { incarnation, host: host.into(), ended });
        ascending && host.len() <= HOST_BYTES_MAX && (ended || !host.is_empty())
    }

    /// What is known of this life, from now on instead of what was of an earlier one.
    fn edit(&mut self, task: TaskId, incarnation: Incarnation) -> &mut Known {
        let known = self.0.entry(task).or_insert_with(|| Known::new(incarnation));
        if known.incarnation != incarnation {
            *known = Known::new(incarnation);
        }
        known
    }
}

impl Known {
    fn new(incarnation: Incarnation) -> Self {
        Self { incarnation, host: Arc::from(""), ended: false }
    }

    fn shown(&self) -> Process<'_> {
        Process { host: &self.host, ended: self.ended }
    }
}

impl Turn<'_> {
    pub(crate) fn note_host(&mut self, task: TaskId, incarnation: Incarnation, host: &str) -> Reply {
        self.known(task, Asked::State)?;
        if !(1..=HOST_BYTES_MAX).contains(&host.len()) {
            let (what, limit) =
                ("bytes of a host's name, which has at least one".to_owned(), HOST_BYTES_MAX as u64);
            return Err(Fault::LimitExceeded { what, limit, actual: host.len() as u64 });
        }
        let record = self.job.tasks.get(task);
        // It may be said before the registration has come.
        let is_another = record.phase() == Phase::Connected && record.incarnation != incarnation;
        if !is_another {
            self.job.processes.edit(task, incarnation).host = host.into();
        }
        Ok(Answer::Done)
    }

    /// The process of that life is no more. It is lost as one that was silent for too long; nothing happens if another life
    /// is there.
    pub(crate) fn end_process(&mut self, task: TaskId, incarnation: Incarnation) -> Reply {
        let is_it = self.job.tasks.contains(task) && {
            let record = self.job.tasks.get(task);
            record.phase() == Phase::Connected && record.incarnation == incarnation
        };
        if is_it {
            self.job.processes.edit(task, incarnation).ended = true;
        }
        self.expire_tasks(vec![(task, incarnation)])
    }
}
