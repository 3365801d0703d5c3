//! What whoever started the processes of tasks says of them: on which host each runs, and that it has ended.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use imbl::OrdMap;

use crate::command::{Answer, Reply};
use crate::fault::{Asked, Fault};
use crate::ids::{FeatureLevel, Incarnation, JobId, TaskId};
use crate::job::domains::{Domain, SnapshotSection};
use crate::job::turn::Turn;
use crate::level::Kind;
use crate::memory::{of_map, of_text};
use crate::snapshot::Malformed;
use crate::snapshot::read::Reader;
use crate::snapshot::record::{Piece, Record};
use crate::task::table::Table;
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
    /// That of this life of the task.
    pub(crate) fn of(&self, task: TaskId, incarnation: Incarnation) -> Option<Process<'_>> {
        self.0.get(&task).filter(|known| known.incarnation == incarnation).map(Known::shown)
    }

    /// Another life begins.
    pub(crate) fn forget(&mut self, task: TaskId) {
        self.0.remove(&task);
    }

    /// The process that is this life is no more.
    pub(crate) fn note_ended(&mut self, task: TaskId, incarnation: Incarnation) {
        self.edit(task, incarnation).ended = true;
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

impl Domain for Processes {
    const SECTION: SnapshotSection = SnapshotSection::BehindSessionOwners;
    const KEPT_SINCE: FeatureLevel = Kind::TASK_NOTE_HOST.needs;

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn digest<H: Hasher>(&self, hasher: &mut H) {
        self.hash(hasher);
    }

    fn bytes(&self) -> u64 {
        let hosts = of_text(HOST_BYTES_MAX).saturating_mul(self.0.len() as u64);
        of_map::<TaskId, Known>(self.0.len()).saturating_add(hosts)
    }

    fn records(&self, job: JobId) -> impl Iterator<Item = Piece> {
        self.0.iter().map(move |(task, known)| Piece::Process {
            job,
            task: *task,
            incarnation: known.incarnation,
            host: known.host.to_string(),
            ended: known.ended,
        })
    }

    fn job_of(record: &Piece) -> Option<JobId> {
        let Piece::Process { job, .. } = record else { return None };
        Some(*job)
    }

    /// One that says nothing is out of place, too.
    fn restore<I: Iterator<Item = Record>>(
        &mut self,
        tasks: &Table,
        record: Piece,
        reader: &mut Reader<I>,
    ) -> Result<(), Malformed> {
        let Piece::Process { task, incarnation, host, ended, .. } = record else {
            return reader.refuse("not a process");
        };
        let ascending = self.0.get_max().is_none_or(|(last, _)| *last < task);
        let legal = host.len() <= HOST_BYTES_MAX && (ended || !host.is_empty());
        reader.check(tasks.contains(task) && ascending && legal)?;
        self.0.insert(task, Known { incarnation, host: host.into(), ended });
        Ok(())
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
            self.job.domains.processes.edit(task, incarnation).host = host.into();
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
            self.job.domains.processes.note_ended(task, incarnation);
        }
        self.expire_tasks(vec![(task, incarnation)])
    }
}
