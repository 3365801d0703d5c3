//! Tasks that are not to run any more.
//!
//! One that waits ends at once. A worker that has one is told to end it, and what it says of it then ends it as
//! cancelled, whatever it says: a report of success counts only if it was there before. A worker that says nothing for
//! longer than it was given for that is given up, as one that is silent: something of the task may run there for ever.

use serde::{Deserialize, Serialize};

use crate::ids::{DurationMs, TimeMs};
use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::answer::Answer;
use crate::ray::command::Run;
use crate::ray::ids::{ObjectId, OperationId, OrderId, WorkerId};
use crate::ray::limits::{GRACE_MS_MAX, OVERDUE_AFTER_MS};
use crate::ray::object::Producer;
use crate::ray::operation::Stage;
use crate::ray::order::Order;
use crate::ray::refusal::Refusal;
use crate::ray::register::invalid;
use crate::ray::view::Reason;

/// A task that a worker is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Cancelling {
    /// How long the worker has for it, from when it is told.
    pub(crate) grace_ms: DurationMs,
    /// When that is over; `None`: the worker is one of 2016, which cannot be told, and ends it when it ends it.
    pub(crate) until_ms: Option<TimeMs>,
    /// What the worker is told, which may be done with.
    pub(crate) order: Option<OrderId>,
}

impl Act<'_> {
    /// By an object that the task makes. What is over stays as it is.
    pub(crate) fn cancel_task(
        &mut self,
        worker: WorkerId,
        object: ObjectId,
        grace_ms: DurationMs,
    ) -> Result<Answer, Refusal> {
        self.ray.living(worker)?;
        if grace_ms.0 > GRACE_MS_MAX {
            return Err(invalid("grace_ms", format!("must be at most {GRACE_MS_MAX}, not {}", grace_ms.0)));
        }
        let Producer::Task(operation) = self.ray.object(object)?.producer else {
            return Err(invalid("objectid", "no task makes it: a process put it".to_owned()));
        };
        Ok(Answer::Cancelled { over: !self.cancel_operation(operation, grace_ms) })
    }

    /// Whether there was something to cancel, or is being cancelled.
    pub(crate) fn cancel_operation(&mut self, operation: OperationId, grace_ms: DurationMs) -> bool {
        let stage = self.ray.entry(operation).map(|entry| (entry.stage, entry.attempt));
        match stage {
            Some((Stage::Queued, _)) => self.fail_task(operation, Reason::Cancelled),
            Some((Stage::Running { worker, .. }, attempt)) => {
                self.cancel_run(worker, Run { operation, attempt }, grace_ms);
            }
            Some((Stage::Reported { .. } | Stage::Done | Stage::Failed | Stage::Cancelled, _)) | None => {
                return false;
            }
        }
        true
    }

    /// Has a worker end a run. What it was told before counts, unless it has less time now.
    fn cancel_run(&mut self, worker: WorkerId, run: Run, grace_ms: DurationMs) {
        let extended = self.ray.workers.get(&worker).is_some_and(|worker| worker.extended);
        let until_ms = extended.then(|| self.now.plus(grace_ms));
        if let Some(known) = self.ray.cancelling.get(&run.operation).copied() {
            if known.until_ms <= until_ms {
                return;
            }
            known.order.map(|order| self.ray.outbox.remove(order));
        }
        let order = extended.then(|| self.ray.outbox.push(Order::Cancel { worker, run, grace_ms }));
        self.ray.cancelling.insert(run.operation, Cancelling { grace_ms, until_ms, order });
    }

    /// Workers that have not ended what they were to end are given up; whether there were any.
    pub(crate) fn overdue(&mut self, runs: &[Run]) -> bool {
        let mut changed = false;
        for run in runs {
            let entry = self.ray.entry(run.operation).filter(|entry| entry.is_run(*run));
            let Some(Stage::Running { worker, .. }) = entry.map(|entry| entry.stage) else { continue };
            if self.ray.is_overdue(run.operation, self.now) {
                self.end_worker(worker, "it did not end a task that was cancelled");
                changed = true;
            }
        }
        changed
    }

    /// A new leader tells them anew, so they have all of their time anew.
    pub(crate) fn rearm_cancelling(&mut self) {
        let now = self.now;
        let told = self.ray.cancelling.iter().filter(|(_, known)| known.until_ms.is_some());
        let told: Vec<(OperationId, Cancelling)> = told.map(|(id, known)| (*id, *known)).collect();
        for (operation, known) in told {
            let until_ms = Some(now.plus(known.grace_ms));
            self.ray.cancelling.insert(operation, Cancelling { until_ms, ..known });
        }
    }
}

impl Ray {
    pub(crate) fn is_cancelling(&self, operation: OperationId) -> bool {
        self.cancelling.contains_key(&operation)
    }

    /// Nobody is told any more: the run is over.
    pub(crate) fn end_cancelling(&mut self, operation: OperationId) {
        if let Some(order) = self.cancelling.remove(&operation).and_then(|known| known.order) {
            self.outbox.remove(order);
        }
    }

    /// The runs that should have ended by now, and of which nobody has heard. For who leads.
    #[must_use]
    pub fn overdue(&self, now: TimeMs) -> Vec<Run> {
        let overdue = self.cancelling.keys().filter(|operation| self.is_overdue(**operation, now));
        let run = |operation: &OperationId| {
            let attempt = self.entry(*operation)?.attempt;
            Some(Run { operation: *operation, attempt })
        };
        overdue.filter_map(run).collect()
    }

    fn is_overdue(&self, operation: OperationId, now: TimeMs) -> bool {
        let until = self.cancelling.get(&operation).and_then(|known| known.until_ms);
        until.is_some_and(|until| until.plus(DurationMs(OVERDUE_AFTER_MS)) <= now)
    }
}
