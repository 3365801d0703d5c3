//! Tasks that came back: that were connected in one life, and registered again in another.
//!
//! What a process wrote in an earlier life stands there when it writes it again. Nobody else's key is meant by that, so it
//! matters who asks.

use std::hash::{Hash, Hasher};

use imbl::OrdMap;

use crate::ids::{FeatureLevel, Incarnation, JobId, LogIndex, TaskId};
use crate::job::domains::{Domain, SnapshotSection};
use crate::job::turn::Turn;
use crate::level::Rule;
use crate::memory::of_map;
use crate::snapshot::Malformed;
use crate::snapshot::read::Reader;
use crate::snapshot::record::{Piece, Record};
use crate::task::table::Table;

/// The lives of tasks that are not their first, the newest of each task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Returned(OrdMap<TaskId, Incarnation>);

impl Returned {
    /// Whether this life of the task is not its first.
    pub(crate) fn has(&self, task: TaskId, incarnation: Incarnation) -> bool {
        self.0.get(&task) == Some(&incarnation)
    }
}

/// Without them who came back is refused what it wrote before, as in a cluster of an earlier level.
impl Domain for Returned {
    const SECTION: SnapshotSection = SnapshotSection::BehindSessionOwners;
    const KEPT_SINCE: FeatureLevel = Rule::Returns.since();

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn digest<H: Hasher>(&self, hasher: &mut H) {
        self.hash(hasher);
    }

    fn bytes(&self) -> u64 {
        of_map::<TaskId, Incarnation>(self.0.len())
    }

    fn records(&self, job: JobId) -> impl Iterator<Item = Piece> {
        let known = self.0.iter();
        known.map(move |(task, incarnation)| Piece::Returned { job, task: *task, incarnation: *incarnation })
    }

    fn job_of(record: &Piece) -> Option<JobId> {
        let Piece::Returned { job, .. } = record else { return None };
        Some(*job)
    }

    fn restore<I: Iterator<Item = Record>>(
        &mut self,
        tasks: &Table,
        record: Piece,
        reader: &mut Reader<I>,
    ) -> Result<(), Malformed> {
        let Piece::Returned { task, incarnation, .. } = record else {
            return reader.refuse("not a task that came back");
        };
        let ascending = self.0.get_max().is_none_or(|(last, _)| *last < task);
        reader.check(tasks.contains(task) && ascending)?;
        self.0.insert(task, incarnation);
        Ok(())
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
            self.job.domains.returned.0.insert(task, incarnation);
        }
    }

    /// Whether this life of a task, which is its present one, is not its first in a job whose tasks may come back.
    pub(crate) fn came_back(&self, task: TaskId, incarnation: Incarnation) -> bool {
        self.job.tasks.contains(task)
            && self.job.recoverable(task)
            && self.job.tasks.get(task).incarnation == incarnation
            && self.job.domains.returned.has(task, incarnation)
    }
}
