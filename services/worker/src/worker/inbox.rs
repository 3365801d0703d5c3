//! Tasks as they come in, and back out again when they would wait too long here. The scheduler may send one twice,
//! when it changes its leader in between.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
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
                        queue.begun.push(Begun { ticket, run, at, waits: false, upkeep: false });
                    }
                    Item::Variable(_) => {
                        queue.begun.push(Begun { ticket, run: None, at, waits: false, upkeep: true });
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
mod tests {
    use super::*;
    use crate::outbox::Letter;
    use tripod_client::wire::RayCall;

    fn request(operation: u64, attempt: u32) -> ExecuteTaskRequest {
        ExecuteTaskRequest { operationid: Some(operation), attempt, ..ExecuteTaskRequest::default() }
    }

    fn inbox() -> (Inbox, tokio::sync::mpsc::UnboundedReceiver<Letter>) {
        let (outbox, told) = Outbox::scripted();
        (Inbox::new(4, outbox), told)
    }

    fn begin(inbox: &Inbox) -> (Ticket, (u64, u32)) {
        let Some((ticket, Item::Task(task))) = inbox.next() else { panic!("there is a task") };
        (ticket, (task.operationid.unwrap(), task.attempt))
    }

    fn run(operationid: u64) -> RayRun {
        RayRun { operationid, attempt: 1 }
    }

    fn given(runs: Vec<RayRun>) -> Vec<RayCall> {
        vec![call(Call::GiveBack(RayGiveBackRequest { workerid: 4, runs }))]
    }

    fn idle() -> Vec<RayCall> {
        vec![call(Call::Idle(ReadyForNewTaskRequest { workerid: 4, previous_task_info: None }))]
    }

    #[test]
    fn an_attempt_that_comes_twice_is_executed_once_and_a_later_one_again() {
        let (inbox, _told) = inbox();
        for (operation, attempt) in [(0, 1), (1, 1), (0, 1), (0, 2), (0, 1)] {
            inbox.task(request(operation, attempt));
        }
        inbox.end();
        for expected in [(0, 1), (1, 1), (0, 2)] {
            let (ticket, task) = begin(&inbox);
            assert_eq!(task, expected);
            inbox.ended(ticket);
        }
        assert!(matches!(inbox.next(), Some((_, Item::End))));
        assert!(inbox.next().is_none(), "who was told to end waits for nothing");
    }

    fn import(name: &str, exportid: Option<u64>) -> ImportReusableVariableRequest {
        let variable = ReusableVar { name: name.as_bytes().to_vec().into(), ..ReusableVar::default() };
        ImportReusableVariableRequest { reusable_variable: Some(variable), exportid }
    }

    #[test]
    fn a_variable_that_an_earlier_leader_sends_late_is_left_alone() {
        let (inbox, _told) = inbox();
        for (name, exportid) in
            [("a", Some(0)), ("b", Some(2)), ("a", Some(0)), ("c", Some(2)), ("d", Some(3)), ("e", None)]
        {
            inbox.variable(import(name, exportid));
        }
        inbox.variable(ImportReusableVariableRequest::default());
        inbox.end();
        for expected in ["a", "b", "d", "e"] {
            let Some((ticket, Item::Variable(variable))) = inbox.next() else {
                panic!("there is a variable")
            };
            assert_eq!(&*variable.name, expected.as_bytes());
            inbox.ended(ticket);
        }
        assert!(matches!(inbox.next(), Some((_, Item::End))));
    }

    #[test]
    fn nothing_begins_while_variables_are_made_and_nothing_is_given_back_for_it() {
        let (inbox, mut told) = inbox();
        inbox.task(request(0, 1));
        inbox.task(request(1, 1));
        let (ticket, _) = begin(&inbox);
        inbox.keeps_up(ticket);
        assert!(inbox.running().is_empty(), "its end is told");
        assert!(inbox.next().is_none(), "what it used is made anew");
        inbox.give_back_behind(Duration::ZERO);
        assert!(told.try_recv().is_err());
        inbox.ended(ticket);
        inbox.variable(import("a", Some(0)));
        inbox.task(request(2, 1));
        let (waiting, task) = begin(&inbox);
        assert_eq!(task, (1, 1));
        assert!(inbox.waits(waiting), "a thread is missing");
        assert_eq!(told.try_recv().unwrap().calls, given(vec![run(2)]));
        inbox.task(request(2, 2));
        let Some((import, Item::Variable(_))) = inbox.next() else { panic!("it is not given back") };
        assert!(inbox.next().is_none(), "nor is the task begun that comes after it");
        inbox.ended(import);
        assert_eq!(begin(&inbox).1, (2, 2));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut seen = Seen::default();
        for operation in 0..3 * REMEMBERED as u64 {
            assert!(seen.note(operation, 1));
        }
        assert_eq!((seen.attempts.len(), seen.order.len()), (REMEMBERED, REMEMBERED));
    }

    #[test]
    fn what_waits_behind_a_long_task_is_given_back_and_nothing_behind_a_short_one() {
        let (inbox, mut told) = inbox();
        for operation in 0..3 {
            inbox.task(request(operation, 1));
        }
        inbox.give_back_behind(Duration::ZERO);
        assert!(told.try_recv().is_err(), "nothing runs");
        let (ticket, _) = begin(&inbox);
        inbox.give_back_behind(Duration::from_secs(3600));
        assert!(told.try_recv().is_err(), "it has run for a moment");
        inbox.give_back_behind(Duration::ZERO);
        assert_eq!(told.try_recv().unwrap().calls, given(vec![run(1), run(2)]));
        inbox.give_back_behind(Duration::ZERO);
        inbox.ended(ticket);
        inbox.task(request(3, 1));
        inbox.give_back_behind(Duration::ZERO);
        assert!(told.try_recv().is_err(), "an idle worker gives nothing back");
    }

    #[test]
    fn while_a_task_waits_another_one_runs_and_one_at_a_time() {
        let (inbox, mut told) = inbox();
        inbox.task(request(0, 1));
        inbox.task(request(1, 1));
        let (waiting, _) = begin(&inbox);
        assert!(inbox.next().is_none(), "one runs");
        assert!(inbox.waits(waiting), "a thread is missing");
        assert_eq!(told.try_recv().unwrap().calls, given(vec![run(1)]));
        assert_eq!(told.try_recv().unwrap().calls, idle());
        inbox.task(request(1, 2));
        let (aside, task) = begin(&inbox);
        assert_eq!(task, (1, 2));
        assert_eq!(inbox.running(), [run(0), RayRun { operationid: 1, attempt: 2 }]);
        inbox.resumes(waiting);
        inbox.ended(aside);
        assert!(inbox.next().is_none(), "the other one runs on, and executes what comes");
        inbox.ended(waiting);
        inbox.task(request(2, 1));
        assert_eq!(begin(&inbox).1, (2, 1));
    }

    #[test]
    fn a_task_that_others_may_be_able_to_begin_is_given_back_so_often_and_no_more() {
        let (inbox, mut told) = inbox();
        for attempt in 1..=RETURNED_MAX {
            inbox.task(request(0, attempt));
            let (ticket, _) = begin(&inbox);
            assert!(inbox.give_back_elsewhere(ticket));
            assert_eq!(told.try_recv().unwrap().calls, given(vec![RayRun { operationid: 0, attempt }]));
            assert_eq!(told.try_recv().unwrap().calls, idle());
        }
        inbox.task(request(0, RETURNED_MAX + 1));
        let (ticket, _) = begin(&inbox);
        assert!(!inbox.give_back_elsewhere(ticket));
        inbox.ended(ticket);
        inbox.task(request(1, 1));
        assert!(inbox.give_back_elsewhere(begin(&inbox).0), "another one");
    }

    #[test]
    fn a_task_that_cannot_begin_is_given_back_with_all_behind_it_and_the_worker_is_idle() {
        let (inbox, mut told) = inbox();
        inbox.task(request(0, 1));
        inbox.task(request(1, 1));
        let (ticket, _) = begin(&inbox);
        assert!(inbox.give_back_all(ticket));
        assert_eq!(told.try_recv().unwrap().calls, given(vec![run(0), run(1)]));
        assert_eq!(told.try_recv().unwrap().calls, idle());
        inbox.task(ExecuteTaskRequest::default());
        let Some((ticket, Item::Task(_))) = inbox.next() else { panic!("there is a task") };
        assert!(!inbox.give_back_all(ticket), "it has no attempt that could be named");
        assert!(!inbox.waits(ticket), "nor one that others could be told beside");
    }
}
