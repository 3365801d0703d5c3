//! What a worker is given whose slots are all taken by tasks that wait: what some task waits for. Anything else would
//! wait there, too, and each task that waits is a thread.

use std::collections::BTreeSet;

use crate::ray::Ray;
use crate::ray::command::Role;
use crate::ray::ids::{ObjectId, OperationId, StoreId, WorkerId};
use crate::ray::object::Producer;
use crate::ray::operation::{Entry, Kind};
use crate::ray::peers::Worker;
use crate::ray::queue::Waiting;
use crate::ray::unfit::Unfit;
use crate::ray::view::Creator;

/// Objects that are looked at for one plan: of very many that are waited for, the newest.
const LOOKED_AT_MAX: usize = 10_000;

/// Ready tasks that others wait for, those for which it was asked last first: a tree of tasks is worked off branch by
/// branch, so that few of its tasks wait at a time.
pub(crate) struct Needed {
    tasks: Vec<OperationId>,
    /// Some task waits for what it has asked for.
    some_wait: bool,
}

impl Needed {
    /// Takes the first that a worker can be given.
    pub(crate) fn take(
        &mut self,
        ray: &Ray,
        worker: WorkerId,
        store: StoreId,
        unfit: &Unfit,
    ) -> Option<OperationId> {
        let place = self.tasks.iter().position(|task| ray.suits(*task, worker, store, unfit))?;
        Some(self.tasks.remove(place))
    }
}

impl Ray {
    /// What a worker is given when nobody goes on, and what is known to be needed cannot be given to anybody: a task may
    /// wait without having asked for anything to be brought. Most likely for what a task submitted that is not over; if no
    /// task waits for what it asked for, it may be anything. The newest, for the same reason.
    pub(crate) fn last_resort(
        &self,
        (worker, store): (WorkerId, StoreId),
        unfit: &Unfit,
        needed: &Needed,
    ) -> Option<OperationId> {
        let goes_on = |id: &WorkerId, known: &Worker| !known.running.is_empty() && !self.is_free(*id);
        if self.workers.iter().any(|(id, known)| goes_on(id, known)) {
            return None;
        }
        let newest = self.index.queue.waiting.iter().rev().take(LOOKED_AT_MAX);
        let mut suiting = newest.filter(|(operation, _)| {
            (!needed.some_wait || self.is_nested(**operation))
                && self.suits(**operation, worker, store, unfit)
        });
        suiting.next().map(|(operation, _)| *operation)
    }

    /// Whether a task that is not over has submitted it.
    fn is_nested(&self, operation: OperationId) -> bool {
        let creator = self.operations.get(&operation).map(|found| found.creator);
        let Some(Creator::Task(around)) = creator else { return false };
        self.entry(around).is_some_and(|around| !around.is_finished())
    }

    /// Whether a task is ready, and can be given to the worker.
    fn suits(&self, operation: OperationId, worker: WorkerId, store: StoreId, unfit: &Unfit) -> bool {
        let waiting = self.index.queue.waiting.get(&operation).filter(|waiting| waiting.is_ready());
        let function = waiting.and_then(|waiting| self.functions.get(waiting.slot));
        function.is_some_and(|function| function.workers.contains(&worker))
            && self.has_needed(operation, worker)
            && !self.is_for_others(operation, store, unfit)
    }

    /// Without which ready tasks those that run cannot go on. What a driver waits for does not count: nothing that runs
    /// depends on it.
    pub(crate) fn needed(&self) -> Needed {
        let mut tasks = Vec::new();
        let mut seen: BTreeSet<OperationId> = BTreeSet::new();
        let mut open: Vec<ObjectId> = self.awaited_by_tasks();
        let some_wait = !open.is_empty();
        let mut left = LOOKED_AT_MAX;
        while let Some(object) = open.pop() {
            if left == 0 {
                break;
            }
            left -= 1;
            let end = self.index.trees.end(object);
            let Some(Producer::Task(maker)) = self.objects.get(&end).map(|object| object.producer) else {
                continue;
            };
            match self.index.queue.waiting.get(&maker).map(Waiting::is_ready) {
                Some(_) if !seen.insert(maker) => {}
                Some(true) => tasks.push(maker),
                // What it waits for may be made again.
                Some(false) => open.extend(self.entry(maker).into_iter().flat_map(Entry::awaited)),
                None => {}
            }
        }
        Needed { tasks, some_wait }
    }

    /// The objects that workers asked for and do not have yet, the last one last.
    fn awaited_by_tasks(&self) -> Vec<ObjectId> {
        let mut gets: Vec<OperationId> = Vec::new();
        let workers = self.workers.iter().filter(|(_, worker)| worker.role == Role::Worker);
        for (id, _) in workers.filter(|(_, worker)| !worker.running.is_empty()) {
            let own = (*id, OperationId(0))..=(*id, OperationId(u64::MAX));
            let own = self.index.worker_gets.range(own).rev().take(LOOKED_AT_MAX);
            gets.extend(own.map(|(_, operation)| *operation));
        }
        gets.sort_unstable();
        // Arguments of tasks that run, which are to be made again.
        let arguments = self.wanted.iter().map(|(object, _)| *object).take(LOOKED_AT_MAX);
        let asked = gets.into_iter().filter_map(|get| match self.operations.get(&get)?.kind {
            Kind::Get { object, .. } => Some(object),
            Kind::Task(_) | Kind::Put(_) => None,
        });
        arguments.chain(asked).collect()
    }
}
