//! What is known of the lives of tasks: tables of a job that have, of each of its tasks, what was told of one life, the newest.
//!
//! Another life begins, and what was told of an earlier one is forgotten. A record of it stands for each task in a snapshot,
//! ascending, and only within its bounds.

use std::hash::{Hash, Hasher};

use crate::ids::{FeatureLevel, Incarnation, JobId, TaskId};
use crate::job::domains::{Domain, SnapshotSection};
use crate::memory::{Weigh, Weighed};
use crate::snapshot::Malformed;
use crate::snapshot::read::Reader;
use crate::snapshot::record::{Piece, Record};
use crate::task::table::Table;

/// What is told of a life.
pub(crate) trait Told: Clone + Hash + Weigh {
    /// As [`Domain::KEPT_SINCE`].
    const KEPT_SINCE: FeatureLevel;

    /// Whether it says something, and no more than is kept.
    fn is_legal(&self) -> bool;

    /// What a snapshot holds of it.
    fn record(&self, job: JobId, task: TaskId, incarnation: Incarnation) -> Piece;

    /// The job of a record, if it is one of these.
    fn job_of(record: &Piece) -> Option<JobId>;

    /// The life of a record, and what was told of it, if it is one of these.
    fn of_record(record: Piece) -> Option<(TaskId, Incarnation, Self)>;
}

/// What was told of lives of a job's tasks, by task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Lives<T: Clone>(Weighed<TaskId, (Incarnation, T)>);

impl<T: Clone> Default for Lives<T> {
    fn default() -> Self {
        Self(Weighed::default())
    }
}

impl<T: Told> Lives<T> {
    /// What was told of this life of the task.
    pub(crate) fn of(&self, task: TaskId, incarnation: Incarnation) -> Option<&T> {
        self.0.get(&task).filter(|(of, _)| *of == incarnation).map(|(_, told)| told)
    }

    /// Keeps that of this life, and nothing of an earlier one.
    pub(crate) fn keep(&mut self, task: TaskId, incarnation: Incarnation, told: T) {
        self.0.insert(task, (incarnation, told));
    }

    /// What was told of this life, which is known no longer; nor is anything of an earlier one.
    pub(crate) fn take(&mut self, task: TaskId, incarnation: Incarnation) -> Option<T> {
        self.0.remove(&task).filter(|(of, _)| *of == incarnation).map(|(_, told)| told)
    }

    /// This life begins, of which something may have been told before.
    pub(crate) fn begin(&mut self, task: TaskId, incarnation: Incarnation) {
        if self.of(task, incarnation).is_none() {
            self.forget(task);
        }
    }

    /// Nothing is known of the task any more. Gives what was, of whatever life.
    pub(crate) fn forget(&mut self, task: TaskId) -> Option<T> {
        self.0.remove(&task).map(|(_, told)| told)
    }
}

impl<T: Weigh> Weigh for (Incarnation, T) {
    fn outside(&self) -> u64 {
        self.1.outside()
    }
}

impl<T: Told> Domain for Lives<T> {
    const SECTION: SnapshotSection = SnapshotSection::BehindSessionOwners;
    const KEPT_SINCE: FeatureLevel = T::KEPT_SINCE;

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn digest<H: Hasher>(&self, hasher: &mut H) {
        self.hash(hasher);
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn recounted(&self) -> u64 {
        self.0.recounted()
    }

    fn records(&self, job: JobId) -> impl Iterator<Item = Piece> {
        self.0.iter().map(move |(task, (incarnation, told))| told.record(job, *task, *incarnation))
    }

    fn job_of(record: &Piece) -> Option<JobId> {
        T::job_of(record)
    }

    fn restore<I: Iterator<Item = Record>>(
        &mut self,
        tasks: &Table,
        record: Piece,
        reader: &mut Reader<I>,
    ) -> Result<(), Malformed> {
        let Some((task, incarnation, told)) = T::of_record(record) else {
            return reader.refuse("not of a life of a task");
        };
        let ascending = self.0.get_max().is_none_or(|(last, _)| *last < task);
        reader.check(tasks.contains(task) && ascending && told.is_legal())?;
        self.keep(task, incarnation, told);
        Ok(())
    }
}
