//! What the tasks of a job look like from outside.

use crate::fault::{Asked, Fault};
use crate::ids::{TaskId, TaskVersion};
use crate::job::record::Job;
use crate::task::{Info, Report};

impl Job {
    /// The states of the given tasks, or of all if the list is empty.
    pub(crate) fn report(&self, tasks: &[TaskId]) -> Result<Report, Fault> {
        if let Some(task) = tasks.iter().find(|task| !self.tasks.contains(**task)) {
            return Err(Fault::TaskUnknown { task: *task, asked: Asked::State });
        }
        let tasks = if tasks.is_empty() {
            self.tasks.ids().map(|task| self.info(task)).collect()
        } else {
            tasks.iter().map(|task| self.info(*task)).collect()
        };
        Ok(Report { version: self.tasks.version(), tasks })
    }

    /// The states of all tasks once they differ from version `seen`; `None` until then.
    pub(crate) fn changed_since(&self, seen: TaskVersion) -> Option<Result<Report, Fault>> {
        let current = self.tasks.version();
        if seen > current {
            Some(Err(Fault::VersionAhead { asked: seen, current }))
        } else if seen == current {
            None
        } else {
            Some(self.report(&[]))
        }
    }

    fn info(&self, task: TaskId) -> Info {
        let record = self.tasks.get(task);
        Info { task, phase: record.phase(), incarnation: record.incarnation, error: record.error().cloned() }
    }
}
