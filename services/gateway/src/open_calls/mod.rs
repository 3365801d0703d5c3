//! Which calls of which task wait on this node, for people who ask who is missing; and the last ones that ended.
//!
//! Only a call that waits is entered, and one by which tasks meet, also that of whoever comes last and need not wait: no put
//! and no read of a key that exists costs anything. What is entered is bounded, and nobody's call takes the place of another task's.

mod call;
mod entry;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;
use tripod_state::ids::{BarrierName, CallId, JobId, TaskId};
use tripod_state::runtime::Wait;
use tripod_state::{Command, Effect, Ticket, barrier, runtime, task};

pub use self::call::{CallKind, CallOutcome, ShownCall};
use self::entry::TaskEntry;

/// Tasks, of all jobs, whose calls are remembered: some 700 bytes each at most. Calls of others are only counted.
const TASKS_MAX: usize = 65_536;

/// The calls of one task, as they are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskCalls {
    /// Those that wait, the oldest first.
    pub open: Vec<ShownCall>,
    /// The last ones that ended, the newest first.
    pub last: Vec<ShownCall>,
}

/// What waits on this node for one job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobCalls {
    pub tasks: BTreeMap<TaskId, TaskCalls>,
    /// Calls that wait, of which nobody knows whose they are.
    pub of_nobody: u64,
    /// Calls that wait, and for which there was no room.
    pub not_entered: u64,
}

/// The table. Its lock is held for a few instructions, by calls that wait.
#[derive(Default)]
pub(crate) struct OpenCalls {
    jobs: Mutex<Jobs>,
}

#[derive(Default)]
struct Jobs {
    by_id: HashMap<JobId, Job>,
    /// Those of all jobs.
    tasks: usize,
    /// The number of the call that was entered last.
    last: u64,
}

#[derive(Default)]
struct Job {
    tasks: HashMap<TaskId, TaskEntry>,
    of_nobody: u64,
    not_entered: u64,
}

/// Where a call is in the table.
#[derive(Clone, Copy)]
enum Place {
    /// Nobody knows whose it is: it is counted.
    OfNobody,
    /// With that number among those of a task.
    Of(TaskId, u64),
    /// There is no room: it is counted.
    NotEntered,
}

/// A call that is entered. Dropped without an outcome, its caller has hung up.
pub(crate) struct Entered {
    calls: Arc<OpenCalls>,
    job: JobId,
    place: Place,
    outcome: CallOutcome,
}

impl OpenCalls {
    /// Enters a call that waits for `ticket`. `asker`: the task that makes it, where the ticket does not say so, if it is one of
    /// the job's. `None`: it is of no interest.
    pub(crate) fn enter(self: &Arc<Self>, ticket: &Ticket, asker: Option<TaskId>) -> Option<Entered> {
        let (kind, own) = CallKind::of(ticket)?;
        let job = ticket.job();
        let mut jobs = self.jobs.lock();
        let place = match own.or(asker) {
            None => {
                jobs.by_id.entry(job).or_default().of_nobody += 1;
                Place::OfNobody
            }
            Some(task) => match jobs.begin(job, task, (kind, ticket)) {
                Some(number) => Place::Of(task, number),
                None => {
                    jobs.by_id.entry(job).or_default().not_entered += 1;
                    Place::NotEntered
                }
            },
        };
        drop(jobs);
        Some(Entered { calls: Arc::clone(self), job, place, outcome: CallOutcome::HungUp })
    }

    /// The calls of that job.
    pub(crate) fn of(&self, job: JobId) -> JobCalls {
        let now = Instant::now();
        let jobs = self.jobs.lock();
        let Some(known) = jobs.by_id.get(&job) else { return JobCalls::default() };
        let tasks = known.tasks.iter().map(|(task, entry)| (*task, entry.shown(now)));
        JobCalls { tasks: tasks.collect(), of_nobody: known.of_nobody, not_entered: known.not_entered }
    }

    /// Forgets the jobs that are no more.
    pub(crate) fn effects(&self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::JobDeleted { job } = effect {
                self.forget(*job);
            }
        }
    }

    /// That job is no more.
    pub(crate) fn forget(&self, job: JobId) {
        let mut jobs = self.jobs.lock();
        if let Some(known) = jobs.by_id.remove(&job) {
            jobs.tasks -= known.tasks.len();
        }
    }

    /// Another state has taken the place of the one that was: nobody says which jobs it does not have. Who waits looks again.
    pub(crate) fn replaced(&self) {
        let mut jobs = self.jobs.lock();
        for known in jobs.by_id.values_mut() {
            known.tasks.retain(|_, entry| entry.waits());
        }
        jobs.by_id.retain(|_, known| !known.tasks.is_empty() || known.of_nobody > 0 || known.not_entered > 0);
        jobs.tasks = jobs.by_id.values().map(|known| known.tasks.len()).sum();
    }

    fn end(&self, job: JobId, place: Place, outcome: CallOutcome) {
        let mut jobs = self.jobs.lock();
        // The job may have been deleted meanwhile.
        let Some(known) = jobs.by_id.get_mut(&job) else { return };
        match place {
            Place::OfNobody => known.of_nobody = known.of_nobody.saturating_sub(1),
            Place::NotEntered => known.not_entered = known.not_entered.saturating_sub(1),
            Place::Of(task, number) => {
                if let Some(entry) = known.tasks.get_mut(&task) {
                    entry.end(number, outcome, Instant::now());
                }
            }
        }
    }
}

/// Whether a call with that ticket is one by which tasks meet: remembered also if it need not wait.
pub(crate) fn is_meeting(ticket: &Ticket) -> bool {
    let kind = CallKind::of(ticket);
    kind.is_some_and(|(kind, _)| !matches!(kind, CallKind::Key | CallKind::Alive | CallKind::Tasks))
}

/// The task that makes a call, where the command says so and its ticket does not.
pub(crate) fn asker(command: &Command) -> Option<TaskId> {
    match command {
        Command::Retried(command) => asker(command),
        Command::Task(task::Command::Alive { task, .. })
        | Command::Runtime(runtime::Command::Arrive { task, .. }) => Some(*task),
        _ => None,
    }
}

/// The ticket with which the task of that command would wait for others. Whoever comes last is answered without one, so this
/// is what its call is remembered by: nothing in it but the job, the task and the place is to be believed.
#[must_use]
pub fn meeting(command: &Command) -> Option<Ticket> {
    match command {
        Command::Retried(command) => meeting(command),
        Command::Barrier(barrier::Command::Arrive { scope, barrier, counter, task, .. }) => {
            let barrier = BarrierName::from(barrier.as_str());
            let (job, counter, task) = (scope.job, *counter, *task);
            Some(Ticket::Barrier { job, barrier, counter, task, call: CallId(0) })
        }
        Command::Task(
            task::Command::Register { scope, task, incarnation, .. }
            | task::Command::RegisterFrom { scope, task, incarnation, .. },
        ) => {
            Some(Ticket::Register { job: scope.job, task: *task, incarnation: *incarnation, call: CallId(0) })
        }
        Command::Task(task::Command::Shutdown { scope, task }) => {
            let (job, barrier, task) = (scope.job, BarrierName::from(""), *task);
            Some(Ticket::Shutdown { job, barrier, task, call: CallId(0) })
        }
        Command::Runtime(command) => meeting_in_runtime(command),
        _ => None,
    }
}

/// The same of the older runtime. An exchange of devices always waits.
fn meeting_in_runtime(command: &runtime::Command) -> Option<Ticket> {
    let (scope, wait) = match command {
        runtime::Command::Connect { scope, task, client }
        | runtime::Command::ConnectFrom { scope, task, client, .. } => {
            (scope, Wait::Connect { task: *task, client: *client, call: CallId(0) })
        }
        runtime::Command::Arrive { scope, barrier, .. } => {
            (scope, Wait::Barrier { barrier: barrier.clone() })
        }
        runtime::Command::Shutdown { scope, .. } => (scope, Wait::Shutdown),
        _ => return None,
    };
    Some(Ticket::Runtime { job: scope.job, wait })
}

impl Jobs {
    /// The number of a call that begins; `None`: there is no room.
    fn begin(&mut self, job: JobId, task: TaskId, (kind, ticket): (CallKind, &Ticket)) -> Option<u64> {
        let known = self.by_id.entry(job).or_default();
        if !known.tasks.contains_key(&task) {
            if self.tasks >= TASKS_MAX {
                return None;
            }
            self.tasks += 1;
        }
        self.last += 1;
        let entry = known.tasks.entry(task).or_default();
        entry.begin(self.last, kind, ticket, Instant::now()).then_some(self.last)
    }
}

impl Entered {
    /// The call has its answer.
    pub(crate) fn answered(mut self, well: bool) {
        self.outcome = if well { CallOutcome::Passed } else { CallOutcome::Refused };
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.calls.end(self.job, self.place, self.outcome);
    }
}

#[cfg(test)]
mod tests;
