//! What a simulated worker was told and has not begun, in its order, and what it has begun.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tripod_proto::ray::ExecuteTaskRequest;
use tripod_proto::tripod::v1::RayRun;

/// What it does next.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) enum Item {
    /// A version of an exported function: its implementation.
    Import(String),
    Task(Box<ExecuteTaskRequest>),
}

/// The queue of one life of a worker.
#[derive(Default)]
pub(in super::super) struct Inbox {
    queue: Mutex<Queue>,
    changed: Notify,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    /// The last attempt of each operation that came.
    seen: BTreeMap<u64, u32>,
    /// The highest number of an import that was queued.
    imported: Option<u64>,
    begun: Vec<Begun>,
}

/// A task that was begun.
struct Begun {
    run: RayRun,
    at: Instant,
    /// It waits for something that others do.
    waits: bool,
}

pub(super) fn run_of(request: &ExecuteTaskRequest) -> RayRun {
    RayRun { operationid: request.operationid.unwrap_or_default(), attempt: request.attempt }
}

impl Inbox {
    /// Queues a task, unless this attempt of it, or a later one, came before.
    pub(super) fn task(&self, request: ExecuteTaskRequest) {
        let mut queue = self.queue.lock();
        let RayRun { operationid, attempt } = run_of(&request);
        let last = queue.seen.get(&operationid).copied();
        if last.is_none_or(|last| last < attempt) {
            queue.seen.insert(operationid, attempt);
            queue.items.push_back(Item::Task(Box::new(request)));
            self.changed.notify_one();
        }
    }

    /// Queues an import. One that an earlier leader sends late must not replace what came after it: exports come in the
    /// order of their numbers. Whether it was not late.
    pub(super) fn import(&self, implementation: String, number: Option<u64>) -> bool {
        let mut queue = self.queue.lock();
        if number.is_some() && number <= queue.imported {
            return false;
        }
        queue.imported = number.or(queue.imported);
        queue.items.push_back(Item::Import(implementation));
        self.changed.notify_one();
        true
    }

    /// The next item, once nothing runs but what waits.
    pub(super) async fn next(&self) -> Item {
        loop {
            let changed = self.changed.notified();
            if let Some(item) = self.queue.lock().begin() {
                return item;
            }
            changed.await;
        }
    }

    /// The task has ended, or is given back.
    pub(super) fn ended(&self, run: RayRun) {
        self.queue.lock().begun.retain(|begun| begun.run != run);
        self.changed.notify_one();
    }

    /// What is to be given back because everything that runs has run for so long: another worker may be idle.
    pub(super) fn behind(&self, running_for: Duration) -> Vec<RayRun> {
        let mut queue = self.queue.lock();
        let long = |begun: &Begun| begun.at.elapsed() >= running_for;
        if queue.is_active() && queue.active().all(long) { queue.take() } else { Vec::new() }
    }

    /// The task waits for something that others do. What is to be given back.
    pub(in super::super) fn waits(&self, run: RayRun) -> Vec<RayRun> {
        let mut queue = self.queue.lock();
        queue.set_waits(run, true);
        self.changed.notify_one();
        queue.take()
    }

    /// The task does not wait any more.
    pub(in super::super) fn resumes(&self, run: RayRun) {
        self.queue.lock().set_waits(run, false);
    }

    /// The task is given back, of which nothing was done yet, and what is behind it.
    pub(super) fn give_back_all(&self, run: RayRun) -> Vec<RayRun> {
        let mut queue = self.queue.lock();
        queue.begun.retain(|begun| begun.run != run);
        self.changed.notify_one();
        [run].into_iter().chain(queue.take()).collect()
    }
}

impl Queue {
    fn active(&self) -> impl Iterator<Item = &Begun> {
        self.begun.iter().filter(|begun| !begun.waits)
    }

    fn is_active(&self) -> bool {
        self.active().next().is_some()
    }

    fn begin(&mut self) -> Option<Item> {
        if self.is_active() {
            return None;
        }
        let item = self.items.pop_front()?;
        if let Item::Task(task) = &item {
            self.begun.push(Begun { run: run_of(task), at: Instant::now(), waits: false });
        }
        Some(item)
    }

    fn set_waits(&mut self, run: RayRun, waits: bool) {
        if let Some(begun) = self.begun.iter_mut().find(|begun| begun.run == run) {
            begun.waits = waits;
        }
    }

    /// Takes all tasks out that were not begun. Imports stay.
    fn take(&mut self) -> Vec<RayRun> {
        let mut runs = Vec::new();
        self.items.retain(|item| match item {
            Item::Task(task) => {
                runs.push(run_of(task));
                false
            }
            Item::Import(_) => true,
        });
        runs
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn request(operation: u64, attempt: u32) -> ExecuteTaskRequest {
        ExecuteTaskRequest { operationid: Some(operation), attempt, ..ExecuteTaskRequest::default() }
    }

    fn run(operationid: u64, attempt: u32) -> RayRun {
        RayRun { operationid, attempt }
    }

    #[test]
    fn an_import_that_is_not_above_those_before_it_is_left_alone() {
        let inbox = Inbox::default();
        let numbers = [Some(0), Some(2), Some(0), Some(2), None, Some(1), Some(3)];
        let taken = numbers.map(|number| inbox.import("f".to_owned(), number));
        assert_eq!(taken, [true, true, false, false, true, false, true]);
    }

    #[test]
    fn what_waits_lets_others_begin_and_gives_back_what_is_behind_it() {
        let inbox = Inbox::default();
        for attempt in [2, 2, 1] {
            inbox.task(request(7, attempt));
        }
        inbox.task(request(8, 1));
        assert_eq!(inbox.next().now_or_never(), Some(Item::Task(Box::new(request(7, 2)))));
        assert_eq!(inbox.next().now_or_never(), None, "one runs");
        assert_eq!(inbox.waits(run(7, 2)), [run(8, 1)]);
        assert!(inbox.import("f".to_owned(), Some(0)));
        inbox.task(request(9, 1));
        assert_eq!(inbox.next().now_or_never(), Some(Item::Import("f".to_owned())));
        assert_eq!(inbox.next().now_or_never(), Some(Item::Task(Box::new(request(9, 1)))));
        inbox.task(request(10, 1));
        assert_eq!(inbox.behind(Duration::ZERO), [run(10, 1)]);
        inbox.task(request(11, 1));
        assert_eq!(inbox.give_back_all(run(9, 1)), [run(9, 1), run(11, 1)]);
        inbox.resumes(run(7, 2));
        inbox.task(request(12, 1));
        assert_eq!(inbox.next().now_or_never(), None, "it does not wait any more");
        inbox.ended(run(7, 2));
        assert_eq!(inbox.next().now_or_never(), Some(Item::Task(Box::new(request(12, 1)))));
    }
}
