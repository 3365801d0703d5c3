//! How the processes of tasks ended, as whoever started them saw it.
//!
//! A task whose process is no more fails at once, by the rules of one that was silent for too long, and with the reason. One
//! that waited for the others to register is taken out of that barrier, so that it passes with those who live: another life
//! of the task may come in its place.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::barrier::REGISTER_BARRIER;
use crate::barrier::instance::Void;
use crate::command::{Answer, Reply};
use crate::fault::{Asked, Fault, Leaving};
use crate::ids::{BarrierName, FeatureLevel, Incarnation, JobId, TaskId, TimeMs};
use crate::job::domains::{Domain, SnapshotSection};
use crate::job::turn::Turn;
use crate::level::Kind;
use crate::limits::within;
use crate::memory::{Weigh, of_text};
use crate::runtime;
use crate::snapshot::Malformed;
use crate::snapshot::read::Reader;
use crate::snapshot::record::{Piece, Record};
use crate::task::Phase;
use crate::task::lives::{Lives, Told};
use crate::task::register::UNAVAILABLE;
use crate::task::table::Table;

/// Bytes of the last that a process wrote to its standard error.
pub const TAIL_BYTES_MAX: usize = 1 << 10;
/// Ends of a job of which that is kept. After the first ones the others say little: they ended because of them.
pub const TAILS_KEPT: usize = 32;
/// Bytes of the last line that the others are told.
const LAST_LINE_BYTES_MAX: usize = 256;
/// Names of signals by their numbers on Linux, those that end processes.
const SIGNALS: [(i32, &str); 16] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (10, "SIGUSR1"),
    (11, "SIGSEGV"),
    (12, "SIGUSR2"),
    (13, "SIGPIPE"),
    (15, "SIGTERM"),
    (24, "SIGXCPU"),
    (31, "SIGSYS"),
];

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum How {
    /// By itself, with an exit code. Code 0 is no success: the process has not left its job.
    Exited { code: i32 },
    /// By a signal. `out_of_memory`: the kernel has ended processes of its control group meanwhile, for want of memory.
    Signalled { signal: i32, core_dumped: bool, out_of_memory: bool },
    /// Nobody knows: whoever started it is no more.
    LauncherEnded,
}

/// The end of a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct End {
    pub how: How,
    /// By the clock of its host.
    pub at: TimeMs,
    /// The last that it wrote to its standard error, if that is known: [`TAIL_BYTES_MAX`] bytes at most.
    pub tail: String,
}

/// The newest ends of the processes of a job's tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ends {
    by_task: Lives<End>,
    /// How many of them have last words. Derived.
    tails: usize,
}

/// What became of the process, as words behind its name.
impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code: 0 } => f.write_str("ended with exit code 0 and has not left its job"),
            Self::Exited { code } => write!(f, "ended with exit code {code}"),
            Self::Signalled { signal, core_dumped, out_of_memory } => {
                match SIGNALS.iter().find(|(number, _)| number == signal) {
                    Some((_, name)) => write!(f, "was ended by {name}")?,
                    None => write!(f, "was ended by signal {signal}")?,
                }
                if *out_of_memory {
                    f.write_str(", out of memory")?;
                }
                if *core_dumped {
                    f.write_str(", core dumped")?;
                }
                Ok(())
            }
            Self::LauncherEnded => f.write_str("lost its launcher, which ended before it"),
        }
    }
}

impl End {
    /// What the task is in error with, and the others are told: as if it had reported it itself, that it cannot be reached. No
    /// fault of its own says it, so that a state holds nothing of it that an older build cannot read.
    fn fault_of(&self, task: TaskId) -> Fault {
        let mut message = format!("{}{}, as whoever started it saw", Fault::of_process(task), self.how);
        let last_line = self.last_line();
        if !last_line.is_empty() {
            message.push_str(&format!("; its last line: {last_line}"));
        }
        Fault::Reported { task, code: UNAVAILABLE, message }
    }

    /// The last line that says something, without control characters, and at most its first 256 bytes.
    #[must_use]
    pub fn last_line(&self) -> String {
        let said = self.tail.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        let end = said.floor_char_boundary(LAST_LINE_BYTES_MAX);
        let shown: String =
            said[..end].chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        shown.trim().to_owned()
    }
}

impl Ends {
    /// That of this life of the task.
    pub(crate) fn of(&self, task: TaskId, incarnation: Incarnation) -> Option<&End> {
        self.by_task.of(task, incarnation)
    }

    /// The task is there again.
    pub(crate) fn forget(&mut self, task: TaskId) {
        if let Some(end) = self.by_task.forget(task) {
            self.tails -= usize::from(!end.tail.is_empty());
        }
    }

    /// Keeps an end, without its last words if so many others have some.
    fn keep(&mut self, task: TaskId, incarnation: Incarnation, end: End) {
        self.forget(task);
        let tail = if self.tails < TAILS_KEPT { end.tail } else { String::new() };
        self.tails += usize::from(!tail.is_empty());
        self.by_task.keep(task, incarnation, End { tail, ..end });
    }
}

impl Weigh for End {
    fn outside(&self) -> u64 {
        of_text(self.tail.len())
    }
}

impl Told for End {
    const KEPT_SINCE: FeatureLevel = Kind::TASK_ENDED.needs;

    fn is_legal(&self) -> bool {
        self.tail.len() <= TAIL_BYTES_MAX
    }

    fn record(&self, job: JobId, task: TaskId, incarnation: Incarnation) -> Piece {
        Piece::Ended { job, task, incarnation, end: self.clone() }
    }

    fn job_of(record: &Piece) -> Option<JobId> {
        let Piece::Ended { job, .. } = record else { return None };
        Some(*job)
    }

    fn of_record(record: Piece) -> Option<(TaskId, Incarnation, Self)> {
        let Piece::Ended { task, incarnation, end, .. } = record else { return None };
        Some((task, incarnation, end))
    }
}

impl Domain for Ends {
    const SECTION: SnapshotSection = Lives::<End>::SECTION;
    const KEPT_SINCE: FeatureLevel = End::KEPT_SINCE;

    fn is_empty(&self) -> bool {
        self.by_task.is_empty()
    }

    fn digest<H: Hasher>(&self, hasher: &mut H) {
        self.hash(hasher);
    }

    fn bytes(&self) -> u64 {
        self.by_task.bytes()
    }

    fn recounted(&self) -> u64 {
        self.by_task.recounted()
    }

    fn records(&self, job: JobId) -> impl Iterator<Item = Piece> {
        self.by_task.records(job)
    }

    fn job_of(record: &Piece) -> Option<JobId> {
        End::job_of(record)
    }

    fn restore<I: Iterator<Item = Record>>(
        &mut self,
        tasks: &Table,
        record: Piece,
        reader: &mut Reader<I>,
    ) -> Result<(), Malformed> {
        if let Piece::Ended { end, .. } = &record {
            self.tails += usize::from(!end.tail.is_empty());
        }
        reader.check(self.tails <= TAILS_KEPT)?;
        self.by_task.restore(tasks, record, reader)
    }
}

impl Turn<'_> {
    /// The process that was that life of the task has ended. Nothing happens if another life is there, or if it had left.
    pub(crate) fn process_ended(&mut self, task: TaskId, incarnation: Incarnation, end: End) -> Reply {
        self.known(task, Asked::State)?;
        within("bytes of a process's last words", end.tail.len() as u64, TAIL_BYTES_MAX as u64)?;
        let record = self.job.tasks.get(task);
        if record.incarnation != incarnation {
            return Ok(Answer::Done);
        }
        let fault = Arc::new(end.fault_of(task));
        let phase = record.phase();
        if phase != Phase::Disconnected || self.job.waits_to_register(task) {
            self.tell_ended(task, &end);
        }
        match phase {
            Phase::Connected => {
                self.job.domains.processes.note_ended(task, incarnation);
                self.job.domains.ends.keep(task, incarnation, end);
                self.lose(task, incarnation, &fault);
            }
            // Its failure was told already; how its process ended is news all the same.
            Phase::Error => self.job.domains.ends.keep(task, incarnation, end),
            Phase::Disconnected if self.job.waits_to_register(task) => {
                self.job.domains.ends.keep(task, incarnation, end);
                self.withdraw_registration(task, &fault);
            }
            Phase::Disconnected => {}
        }
        Ok(Answer::Done)
    }

    /// As the leader's timers lose a task, for another reason.
    fn lose(&mut self, task: TaskId, incarnation: Incarnation, fault: &Arc<Fault>) {
        if incarnation == runtime::INCARNATION && self.job.runtime_started() {
            self.lose_runtime_task(task);
            return;
        }
        let is_quiet = self.job.recoverable(task);
        self.enter_error(task, fault);
        self.propagate(fault, is_quiet);
    }

    /// The others wait on, until another life of the task comes or the time is up. Upstream lets the dead one pass with them.
    fn withdraw_registration(&mut self, task: TaskId, fault: &Arc<Fault>) {
        let name = BarrierName::from(REGISTER_BARRIER);
        let mut barrier =
            self.job.barriers.edit(&name).expect("the caller checked that the task waits at it");
        barrier.current.void(task, Void::Left(Leaving::Error(fault.cited())));
        drop(barrier);
        self.job.tasks.edit(task).registering = None;
        self.barrier_changed(&name);
        self.tasks_changed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_line(tail: &str) -> String {
        End { how: How::LauncherEnded, at: TimeMs(0), tail: tail.to_owned() }.last_line()
    }

    #[test]
    fn the_last_line_that_says_something_is_told_and_orders_nothing() {
        assert_eq!(last_line("Traceback\n  \u{1b}[31mValueError: x\t\n\n"), "[31mValueError: x");
        assert_eq!(last_line("a\u{1b}b"), "a b");
        assert_eq!((last_line(""), last_line(" \n")), (String::new(), String::new()));
        assert_eq!(last_line(&"\u{e4}".repeat(400)).len(), LAST_LINE_BYTES_MAX);
    }

    #[test]
    fn an_end_is_told_by_what_ended_it() {
        let signalled =
            |signal, core_dumped, out_of_memory| How::Signalled { signal, core_dumped, out_of_memory };
        assert_eq!(How::Exited { code: 3 }.to_string(), "ended with exit code 3");
        assert_eq!(How::Exited { code: 0 }.to_string(), "ended with exit code 0 and has not left its job");
        assert_eq!(signalled(9, false, true).to_string(), "was ended by SIGKILL, out of memory");
        assert_eq!(signalled(11, true, false).to_string(), "was ended by SIGSEGV, core dumped");
        assert_eq!(signalled(64, false, false).to_string(), "was ended by signal 64");
    }
}
