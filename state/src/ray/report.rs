//! What workers say: that they can be given a task, and what became of the last one.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::level::Rule;
use crate::memory::{Weigh, of_text};
use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::answer::Answer;
use crate::ray::command::{Peer, Previous, Role, Run};
use crate::ray::graph_task::End;
use crate::ray::ids::{FunctionName, ObjectId, OperationId, WorkerId};
use crate::ray::incident::Incident;
use crate::ray::limits::{ERROR_BYTES_MAX, FAILED_KEPT};
use crate::ray::operation::Stage;
use crate::ray::order::Order;
use crate::ray::refusal::Refusal;
use crate::ray::view::Reason;

/// A task that failed, for people.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct FailedTask {
    pub(crate) operation: OperationId,
    pub(crate) name: FunctionName,
    /// The address of the worker that said so.
    pub(crate) worker: String,
    pub(crate) error: Bytes,
}

impl Weigh for FailedTask {
    fn outside(&self) -> u64 {
        let texts = of_text(self.worker.len()).saturating_add(of_text(self.error.len()));
        texts.saturating_add(of_text(self.name.0.len()))
    }
}

impl Act<'_> {
    pub(crate) fn idle(
        &mut self,
        id: WorkerId,
        previous: Option<Previous>,
        run: Option<Run>,
    ) -> Result<Answer, Refusal> {
        let asks = previous.is_none();
        let worker = self.ray.executor(id)?;
        let current = match run {
            None => worker.running.first().copied(),
            Some(run) if worker.running.contains(&run) => Some(run),
            // It may have been said before, and the answer been lost.
            Some(run) => {
                self.ray.check_run(Some(run))?;
                None
            }
        };
        let first = !worker.initialised;
        if first {
            self.ray.worker_mut(id).initialised = true;
            self.replay_exports(id);
        }
        let mut ended = false;
        if let (Some(previous), Some(run)) = (previous, current) {
            self.widen(id);
            self.report(id, run, previous);
            ended = true;
        }
        let mut worker = self.ray.worker_mut(id);
        worker.accepting = true;
        worker.suspect_until = None;
        drop(worker);
        // When the one that ended took long, it gave back what it can begin now.
        if asks || ended && self.follows(Rule::RoomBesideWaiting) {
            self.make_room(id);
        }
        self.ray.follow_idle(id);
        Ok(Answer::Done)
    }

    /// A worker of 2016 reports once, and what was lost with the node that it was told to does not come again. Whether
    /// there was such a task. Of what it made nothing says that it failed.
    pub(crate) fn unreported(&mut self, runs: &[Run]) -> bool {
        let mut changed = false;
        for run in runs.iter().copied() {
            let Some(Stage::Running { worker, .. }) = self.ray.entry(run.operation).map(|entry| entry.stage)
            else {
                continue;
            };
            if !self.ray.is_unreported(worker, run) {
                continue;
            }
            self.report(worker, run, Previous { succeeded: true, error: Bytes::new() });
            self.ray.worker_mut(worker).accepting = true;
            self.ray.follow_idle(worker);
            changed = true;
        }
        changed
    }

    /// The tasks go back into the queue, as if they had never been given to the worker.
    pub(crate) fn give_back(&mut self, id: WorkerId, runs: &[Run]) -> Result<Answer, Refusal> {
        self.ray.executor(id)?;
        for run in runs.iter().rev() {
            self.take_back(id, *run);
        }
        self.narrow(id);
        let mut worker = self.ray.worker_mut(id);
        worker.accepting = worker.running.is_empty();
        drop(worker);
        self.ray.follow_idle(id);
        Ok(Answer::Done)
    }

    /// Ends all workers if no task waits or runs. Exports stay, for the workers that come.
    pub(crate) fn kill_workers(&mut self) -> Answer {
        if !self.ray.index.queue.waiting.is_empty() || self.ray.index.running > 0 {
            return Answer::Killed(false);
        }
        let workers = self.ray.workers.iter();
        let workers: Vec<WorkerId> = workers
            .filter(|(_, worker)| worker.is_alive() && worker.role == Role::Worker)
            .map(|(id, _)| *id)
            .collect();
        for worker in workers {
            self.ray.outbox.forget(Peer::Worker(worker));
            self.end_worker(worker, "all workers were to end");
            self.ray.outbox.push(Order::Die { worker });
        }
        self.ray.functions.clear();
        Answer::Killed(true)
    }

    fn report(&mut self, id: WorkerId, run: Run, previous: Previous) {
        self.ray.stop_running(id, run);
        if self.ray.is_cancelling(run.operation) {
            self.fail_task(run.operation, Reason::Cancelled);
            return;
        }
        let store = self.ray.workers[&id].store;
        let Previous { succeeded, error } = previous;
        if succeeded {
            let first = !std::mem::replace(&mut self.ray.entry_mut(run.operation).counted, true);
            self.ray.succeeded += u64::from(first);
        } else {
            let error = error.slice(..error.len().min(ERROR_BYTES_MAX));
            if self.retry_exception(run.operation, &error) {
                return;
            }
            self.ray.entry_mut(run.operation).error = error.clone();
            let worker = self.ray.workers[&id].address();
            self.ray.end_watch(run.operation, End::Raised(&error));
            self.ray.note_failure(run.operation, worker, error);
        }
        self.ray.entry_mut(run.operation).stage = Stage::Reported { succeeded, store };
        self.ray.index.reported.insert((store, run.operation));
        let results = self.ray.entry(run.operation).map(|entry| entry.results.clone()).unwrap_or_default();
        self.lost.extend(results.into_iter().filter(|result| self.ray.is_lost(*result)));
        self.end_calls(run.operation);
        self.judge_task(run.operation);
    }

    /// Tries a task again that ended with an exception, if it is to be. What it stored does not count.
    fn retry_exception(&mut self, operation: OperationId, error: &Bytes) -> bool {
        let Some(entry) = self.ray.entry(operation) else { return false };
        if !entry.options.retry_exceptions || !entry.may_retry() {
            return false;
        }
        let results: Vec<ObjectId> = entry.results.clone();
        for result in results {
            self.unmake(result);
        }
        let text = format!("exception: {}", String::from_utf8_lossy(&error[..error.len().min(256)]));
        self.try_again(operation, &text);
        true
    }
}

impl Ray {
    /// The tasks whose workers of 2016 have made all results and have not said that they are done. Tasks without
    /// results are not among them: nothing tells whether those are done.
    #[must_use]
    pub fn unreported(&self) -> Vec<Run> {
        let workers = self.workers.iter().filter(|(_, worker)| !worker.extended);
        let first = workers.filter_map(|(id, worker)| Some((*id, *worker.running.first()?)));
        first.filter(|(worker, run)| self.is_unreported(*worker, *run)).map(|(_, run)| run).collect()
    }

    fn is_unreported(&self, worker: WorkerId, run: Run) -> bool {
        let Some(worker) = self.workers.get(&worker) else { return false };
        let made = |result: &ObjectId| !self.is_awaited(*result);
        !worker.extended
            && worker.running.first() == Some(&run)
            && self.entry(run.operation).is_some_and(|entry| {
                entry.is_run(run) && !entry.results.is_empty() && entry.results.iter().all(made)
            })
    }

    /// A worker does not run a task any more, however that ended.
    pub(crate) fn stop_running(&mut self, id: WorkerId, run: Run) {
        self.worker_mut(id).running.retain(|known| *known != run);
        self.index.running -= 1;
        if let Some(Stage::Running { order, .. }) = self.entry(run.operation).map(|entry| entry.stage) {
            self.outbox.remove(order);
        }
    }

    /// Keeps the newest failures for those who ask.
    pub(crate) fn note_failure(&mut self, operation: OperationId, worker: String, error: Bytes) {
        let name = self.entry(operation).map(|entry| entry.task.name.clone()).expect("it is a task");
        self.incidents.push(Incident::TaskFailed { function: name.clone(), error: error.clone() });
        self.keep_failure(Arc::new(FailedTask { operation, name, worker, error }));
        self.failures += 1;
        while self.failed.len() > FAILED_KEPT {
            if let Some(oldest) = self.failed.pop_front() {
                self.failed_bytes = self.failed_bytes.saturating_sub(oldest.outside());
            }
        }
    }

    /// Puts one behind the others.
    pub(crate) fn keep_failure(&mut self, task: Arc<FailedTask>) {
        self.failed_bytes = self.failed_bytes.saturating_add(task.outside());
        self.failed.push_back(task);
    }
}
