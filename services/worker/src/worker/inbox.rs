//! Tasks as they come in, and back out again when they would wait too long here. The scheduler may send one twice,
//! when it changes its leader in between.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;
use tripod_client::wire::ray_call::Call;
use tripod_client::wire::{RayGiveBackRequest, RayRun};
use tripod_proto::ray::{
    ExecuteTaskRequest, ImportReusableVariableRequest, ReadyForNewTaskRequest, ReusableVar,
};

use crate::outbox::{Outbox, call};

/// Attempts that are remembered, to recognise them. A leader that took over sends what was not reported: at most as many
/// as a worker may have.
const REMEMBERED: usize = 8_192;
/// How often a worker gives a task back because an argument cannot come to its store. The scheduler sends it here again
/// only if it has forgotten why it came back; if it does so for ever, the task fails.
const RETURNED_MAX: u32 = 16;
/// Tasks that may wait on one worker, each with a thread. The scheduler gives beside them only what others wait for,
/// and no more than a thousand within each other.
const BEGUN_MAX: usize = 4_096;

/// What a worker is told, in the order in which it does it.
#[derive(Debug)]
pub(super) enum Item {
    Task(Box<ExecuteTaskRequest>),
    /// A reusable variable as a driver exported it.
    Variable(Box<ReusableVar>),
    End,
}

/// The queue of one life of a worker.
pub(crate) struct Inbox {
    worker: u64,
    outbox: Outbox,
    queue: Mutex<Queue>,
    came: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    items: VecDeque<Item>,
    seen: Seen,
    /// The highest number of an exported variable that was queued.
    imported: Option<u64>,
    /// What runs, and what waits within a task.
    begun: Vec<Begun>,
    tickets: u64,
    /// Threads that would begin the next item at once.
    idle: usize,
    closed: bool,
}

/// A task that was begun, or what the worker does between two of them.
#[derive(Debug)]
struct Begun {
    ticket: Ticket,
    run: Option<RayRun>,
    at: Instant,
    /// It waits for something that others do.
    waits: bool,
    /// Variables are made, for whatever task comes next.
    upkeep: bool,
    /// It is to end, by then. Whoever runs it listens to this.
    end_by: watch::Sender<Option<Instant>>,
}

/// Which of those that were begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

#[derive(Debug, Default)]
struct Seen {
    attempts: BTreeMap<u64, u32>,
    /// How often tasks were given back because an argument could not come here.
    returned: BTreeMap<u64, u32>,
    order: VecDeque<u64>,
}

impl Inbox {
    pub(super) fn new(worker: u64, outbox: Outbox) -> Self {
        Self { worker, outbox, queue: Mutex::default(), came: Condvar::new() }
    }

    /// Queues a task, unless this attempt of it, or a later one, is queued or was.
    pub(super) fn task(&self, request: ExecuteTaskRequest) {
        let mut queue = self.queue.lock();
        let is_new = match request.operationid {
            Some(operation) => queue.seen.note(operation, request.attempt),
            // A scheduler that names no attempts sends none twice.
            None => true,
        };
        if is_new {
            queue.items.push_back(Item::Task(Box::new(request)));
            self.came.notify_one();
        }
    }

    /// Queues a variable, ahead of the tasks that come later. One that an earlier leader sends late must not replace
    /// what came after it: exports come in the order of their numbers.
    pub(super) fn variable(&self, request: ImportReusableVariableRequest) {
        let Some(variable) = request.reusable_variable else { return };
        let mut queue = self.queue.lock();
        if let Some(number) = request.exportid {
            if queue.imported.is_some_and(|highest| number <= highest) {
                return;
            }
            queue.imported = Some(number);
        }
        queue.items.push_back(Item::Variable(Box::new(variable)));
        self.came.notify_one();
    }

    /// An attempt is to end within that time. What was not begun is given back, which ends it; what runs is told; and
    /// what is not here is over.
    pub(super) fn cancel(&self, run: RayRun, grace: Duration) {
        let mut queue = self.queue.lock();
        let waiting = queue.items.len();
        queue.items.retain(|item| !matches!(item, Item::Task(task) if run_of(task) == Some(run)));
        if queue.items.len() < waiting {
            self.tell(vec![run]);
        }
        if let Some(begun) = queue.begun.iter().find(|begun| begun.run == Some(run)) {
            let by = Instant::now() + grace;
            begun.end_by.send_modify(|end_by| *end_by = Some(end_by.map_or(by, |known| known.min(by))));
        }
    }

    /// Whether, and by when, a task that was begun is to end.
    pub(crate) fn end_of(&self, ticket: Ticket) -> watch::Receiver<Option<Instant>> {
        let queue = self.queue.lock();
        let begun = queue.begun.iter().find(|begun| begun.ticket == ticket);
        begun.map_or_else(|| watch::Sender::new(None).subscribe(), |begun| begun.end_by.subscribe())
    }

    /// An attempt that should have ended by now.
    pub(super) fn stuck(&self) -> Option<RayRun> {
        let queue = self.queue.lock();
        let late = |begun: &&Begun| begun.end_by.borrow().is_some_and(|by| by <= Instant::now());
        queue.begun.iter().filter(late).find_map(|begun| begun.run)
    }

    /// The worker is to end after what is queued.
    pub(super) fn end(&self) {
        self.queue.lock().items.push_back(Item::End);
        self.came.notify_one();
    }

    /// Nobody waits for more any longer.
    pub(super) fn close(&self) {
        self.queue.lock().closed = true;
        self.came.notify_all();
    }

    /// Waits for the next item. `None`: the queue was closed, or another thread executes already.
    pub(super) fn next(&self) -> Option<(Ticket, Item)> {
        let mut queue = self.queue.lock();
        loop {
            if queue.closed || queue.idle > 0 || queue.active().next().is_some() {
                return None;
            }
            if let Some(item) = queue.items.pop_front() {
                queue.tickets += 1;
                let ticket = Ticket(queue.tickets);
                let at = Instant::now();
                match &item {
                    Item::Task(task) => {
                        let run = run_of(task);
                        queue.begun.push(Begun::of(ticket, run, at, false));
                    }
                    Item::Variable(_) => {
                        queue.begun.push(Begun::of(ticket, None, at, true));
                    }
                    Item::End => queue.closed = true,
                }
                return Some((ticket, item));
            }
            queue.idle += 1;
            self.came.wait(&mut queue);
            queue.idle -= 1;
        }
    }

    /// The task has ended, but for the variables that it has used: nothing begins until [`Self::ended`]. This comes before
    /// the task's end is told, and that one after the variables are made anew.
    pub(super) fn keeps_up(&self, ticket: Ticket) {
        let mut queue = self.queue.lock();
        if let Some(begun) = queue.begun.iter_mut().find(|begun| begun.ticket == ticket) {
            (begun.run, begun.upkeep) = (None, true);
        }
    }

    /// The task has ended. Comes before its end is told: what is given back after that would be given back by an
    /// idle worker.
    pub(super) fn ended(&self, ticket: Ticket) {
        self.queue.lock().begun.retain(|begun| begun.ticket != ticket);
    }

    /// The attempts that were begun.
    pub(super) fn running(&self) -> Vec<RayRun> {
        self.queue.lock().begun.iter().filter_map(|begun| begun.run).collect()
    }

    /// Gives back what waits for a thread, if what runs has run for so long: another worker may be idle.
    pub(super) fn give_back_behind(&self, running_for: Duration) {
        let mut queue = self.queue.lock();
        // For the cluster a worker that makes variables is idle, and would be given the tasks again at once.
        let long = |begun: &Begun| !begun.upkeep && begun.at.elapsed() >= running_for;
        if queue.idle == 0 && queue.active().next().is_some() && queue.active().all(long) {
            let runs = queue.take();
            self.tell(runs);
        }
    }

    /// The task waits for something that others do: what is behind it is given back, and the scheduler may give one
    /// more. Whether another thread is to execute that.
    pub(crate) fn waits(&self, ticket: Ticket) -> bool {
        let mut queue = self.queue.lock();
        let Some(begun) = queue.begun.iter_mut().find(|begun| begun.ticket == ticket) else { return false };
        // Without attempts it is a scheduler that gives a worker one task at a time.
        if begun.run.is_none() {
            return false;
        }
        begun.waits = true;
        let runs = queue.take();
        self.tell(runs);
        if queue.begun.len() >= BEGUN_MAX {
            let (worker, tasks) = (self.worker, queue.begun.len());
            tracing::warn!(
                worker,
                tasks,
                "as many tasks wait here as may: another worker must run what they wait for"
            );
            return false;
        }
        self.ask_for_one();
        queue.idle == 0 && queue.active().next().is_none()
    }

    /// The task does not wait any more.
    pub(crate) fn resumes(&self, ticket: Ticket) {
        let mut queue = self.queue.lock();
        if let Some(begun) = queue.begun.iter_mut().find(|begun| begun.ticket == ticket) {
            begun.waits = false;
        }
    }

    /// Gives back the task too, of which nothing was done yet. `false`: the scheduler does not know attempts.
    pub(super) fn give_back_all(&self, ticket: Ticket) -> bool {
        let mut queue = self.queue.lock();
        let Some(place) = queue.begun.iter().position(|begun| begun.ticket == ticket) else { return false };
        let Some(current) = queue.begun[place].run else { return false };
        queue.begun.remove(place);
        let mut runs = vec![current];
        runs.extend(queue.take());
        self.tell(runs);
        self.ask_for_one();
        true
    }

    /// Gives back a task of which an argument cannot come to this store: workers of another one may have it. `false`: it
    /// was given back often enough.
    pub(super) fn give_back_elsewhere(&self, ticket: Ticket) -> bool {
        let run =
            self.queue.lock().begun.iter().find(|begun| begun.ticket == ticket).and_then(|begun| begun.run);
        let Some(run) = run else { return false };
        self.queue.lock().seen.may_return(run.operationid) && self.give_back_all(ticket)
    }

    fn ask_for_one(&self) {
        let idle = ReadyForNewTaskRequest { workerid: self.worker, previous_task_info: None };
        self.outbox.tell(vec![call(Call::Idle(idle))]);
    }

    fn tell(&self, runs: Vec<RayRun>) {
        if !runs.is_empty() {
            tracing::debug!(worker = self.worker, tasks = runs.len(), "tasks are given back");
            let given = RayGiveBackRequest { workerid: self.worker, runs };
            self.outbox.tell(vec![call(Call::GiveBack(given))]);
        }
    }
}

pub(super) fn run_of(request: &ExecuteTaskRequest) -> Option<RayRun> {
    request.operationid.map(|operationid| RayRun { operationid, attempt: request.attempt })
}

impl Begun {
    fn of(ticket: Ticket, run: Option<RayRun>, at: Instant, upkeep: bool) -> Self {
        Self { ticket, run, at, waits: false, upkeep, end_by: watch::Sender::new(None) }
    }
}

impl Queue {
    /// What runs and does not wait.
    fn active(&self) -> impl Iterator<Item = &Begun> {
        self.begun.iter().filter(|begun| !begun.waits)
    }

    /// Takes out all tasks that can be given back.
    fn take(&mut self) -> Vec<RayRun> {
        let mut runs = Vec::new();
        self.items.retain(|item| match item {
            Item::Task(task) => match run_of(task) {
                Some(run) => {
                    runs.push(run);
                    false
                }
                None => true,
            },
            Item::Variable(_) | Item::End => true,
        });
        runs
    }
}

impl Seen {
    fn note(&mut self, operation: u64, attempt: u32) -> bool {
        match self.attempts.get_mut(&operation) {
            Some(last) if *last >= attempt => return false,
            Some(last) => *last = attempt,
            None => {
                self.attempts.insert(operation, attempt);
                self.order.push_back(operation);
            }
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.attempts.remove(&oldest);
            self.returned.remove(&oldest);
        }
        true
    }

    fn may_return(&mut self, operation: u64) -> bool {
        let returned = self.returned.entry(operation).or_insert(0);
        *returned += 1;
        *returned <= RETURNED_MAX
    }
}

#[cfg(test)]
mod tests;
