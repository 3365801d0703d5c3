//! What whoever started the processes of tasks says of them: on which host each runs, and that it has ended.

use std::sync::Arc;

use crate::command::{Answer, Reply};
use crate::fault::{Asked, Fault};
use crate::ids::{FeatureLevel, Incarnation, JobId, TaskId};
use crate::job::turn::Turn;
use crate::level::Kind;
use crate::memory::{Weigh, of_text};
use crate::snapshot::record::Piece;
use crate::task::lives::{Lives, Told};
use crate::task::{Phase, Process};

/// Bytes of a host's name; those of the DNS have at most 253 characters.
pub const HOST_BYTES_MAX: usize = 255;

/// The processes of the tasks of a job of which something was said.
pub(crate) type Processes = Lives<Known>;

/// What was said of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    /// Empty: nobody has said it.
    host: Arc<str>,
    ended: bool,
}

impl Known {
    pub(crate) fn shown(&self) -> Process<'_> {
        Process { host: &self.host, ended: self.ended }
    }
}

impl Processes {
    /// The process that is this life is no more.
    pub(crate) fn note_ended(&mut self, task: TaskId, incarnation: Incarnation) {
        let known = self.take(task, incarnation).unwrap_or_default();
        self.keep(task, incarnation, Known { ended: true, ..known });
    }

    /// It runs on that host.
    fn note_host(&mut self, task: TaskId, incarnation: Incarnation, host: &str) {
        let known = self.take(task, incarnation).unwrap_or_default();
        self.keep(task, incarnation, Known { host: host.into(), ..known });
    }
}

impl Weigh for Known {
    fn outside(&self) -> u64 {
        of_text(self.host.len())
    }
}

impl Told for Known {
    const KEPT_SINCE: FeatureLevel = Kind::TASK_NOTE_HOST.needs;

    fn is_legal(&self) -> bool {
        self.host.len() <= HOST_BYTES_MAX && (self.ended || !self.host.is_empty())
    }

    fn record(&self, job: JobId, task: TaskId, incarnation: Incarnation) -> Piece {
        Piece::Process { job, task, incarnation, host: self.host.to_string(), ended: self.ended }
    }

    fn job_of(record: &Piece) -> Option<JobId> {
        let Piece::Process { job, .. } = record else { return None };
        Some(*job)
    }

    fn of_record(record: Piece) -> Option<(TaskId, Incarnation, Self)> {
        let Piece::Process { task, incarnation, host, ended, .. } = record else { return None };
        Some((task, incarnation, Self { host: host.into(), ended }))
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
            self.job.domains.processes.note_host(task, incarnation, host);
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
