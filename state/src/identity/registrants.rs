//! Whose the present lives of tasks are, as far as a port proved who registered them.

use std::hash::{Hash, Hasher};

use imbl::OrdMap;

use crate::identity::Identity;
use crate::ids::{FeatureLevel, Incarnation, JobId, TaskId};
use crate::job::domains::{Domain, SnapshotSection};
use crate::job::record::Job;
use crate::job::turn::Turn;
use crate::level::Kind;
use crate::limits::JOB_NAME_CHARS_MAX;
use crate::memory::of_map;
use crate::snapshot::Malformed;
use crate::snapshot::read::Reader;
use crate::snapshot::record::{Piece, Record};
use crate::task::Phase;
use crate::task::table::Table;

/// Who registered the newest life of each task, of those of whom it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Registrants(OrdMap<TaskId, (Incarnation, Identity)>);

/// Without them every task of a job may speak for the others, as in a cluster of an earlier level.
impl Domain for Registrants {
    const SECTION: SnapshotSection = SnapshotSection::BehindSessionOwners;
    const KEPT_SINCE: FeatureLevel = Kind::BY.needs;

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn digest<H: Hasher>(&self, hasher: &mut H) {
        self.hash(hasher);
    }

    /// The names are of the job itself, and so have a bound.
    fn bytes(&self) -> u64 {
        let names = (self.0.len() * JOB_NAME_CHARS_MAX) as u64;
        of_map::<TaskId, (Incarnation, Identity)>(self.0.len()).saturating_add(names)
    }

    fn records(&self, job: JobId) -> impl Iterator<Item = Piece> {
        self.0.iter().map(move |(task, (incarnation, identity))| Piece::Registrant {
            job,
            task: *task,
            incarnation: *incarnation,
            identity: identity.clone(),
        })
    }

    fn job_of(record: &Piece) -> Option<JobId> {
        let Piece::Registrant { job, .. } = record else { return None };
        Some(*job)
    }

    fn restore<I: Iterator<Item = Record>>(
        &mut self,
        tasks: &Table,
        record: Piece,
        reader: &mut Reader<I>,
    ) -> Result<(), Malformed> {
        let Piece::Registrant { task, incarnation, identity, .. } = record else {
            return reader.refuse("not who registered a task");
        };
        let ascending = self.0.get_max().is_none_or(|(last, _)| *last < task);
        reader.check(tasks.contains(task) && ascending && identity.check().is_ok())?;
        self.0.insert(task, (incarnation, identity));
        Ok(())
    }
}

impl Turn<'_> {
    /// A registration was taken of this caller, or of one of whom nothing is known.
    pub(crate) fn note_registrant(&mut self, task: TaskId, incarnation: Incarnation, by: Option<&Identity>) {
        let known = &mut self.job.domains.registrants.0;
        match by {
            Some(by) => drop(known.insert(task, (incarnation, by.clone()))),
            None => drop(known.remove(&task)),
        }
    }
}

impl Job {
    /// Who registered the life of a task that is there, or about to be; `None` if that is not known, or there is none.
    pub(crate) fn registrant(&self, task: TaskId) -> Option<&Identity> {
        let (incarnation, identity) = self.domains.registrants.0.get(&task)?;
        let record = self.tasks.get(task);
        let lives = record.phase() == Phase::Connected || record.registering.is_some();
        (lives && record.incarnation == *incarnation).then_some(identity)
    }
}
