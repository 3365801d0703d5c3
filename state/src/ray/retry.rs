//! Tasks that are tried again, or not any more; and what becomes of the objects that they were to make.

use std::sync::Arc;

use bytes::Bytes;

use crate::ids::DurationMs;
use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::command::Run;
use crate::ray::graph_task::End;
use crate::ray::ids::{FunctionName, ObjectId, OperationId, StoreId, WorkerId};
use crate::ray::limits::{BACK_OFF_MS_MAX, HISTORY_KEPT, POISON_DEATHS, SUSPECT_MS};
use crate::ray::object::{Object, Producer, Target};
use crate::ray::operation::{Entry, Stage};
use crate::ray::view::{Failure, Reason};

/// How it is noted that a worker was to have a task and never got it.
const NEVER_HANDED_OVER: &str = "was never handed over";

impl Entry {
    /// Attempts that a worker made or makes, as people count them: what a worker gave back, or never got, is none,
    /// though [`Entry::attempt`] counts it. One that a worker has counts whether it has begun yet or not.
    pub(crate) fn attempts(&self) -> u32 {
        let last = match self.stage {
            Stage::Queued | Stage::Cancelled => false,
            Stage::Running { .. } | Stage::Reported { .. } | Stage::Done => true,
            Stage::Failed => !self.failed_in_the_queue(),
        };
        self.spent.saturating_add(u32::from(last))
    }

    /// How attempts ended, numbered as [`Entry::attempts`] counts them.
    pub(crate) fn endings(&self) -> Vec<String> {
        // The last one is among them and among those that were spent, unless none was left to be tried.
        let exhausted =
            self.stage == Stage::Failed && self.error[..] == *explain(Reason::RetriesExhausted).as_bytes();
        numbered(&self.history, self.spent.saturating_add(u32::from(exhausted)))
    }

    /// Whether a task that failed did so while no worker had it. Its error is one that only the scheduler writes.
    fn failed_in_the_queue(&self) -> bool {
        let error = String::from_utf8_lossy(&self.error);
        let argument =
            error.strip_prefix("its argument, object ").and_then(|rest| rest.strip_suffix(", cannot be had"));
        let argument = argument.and_then(|object| object.parse().ok()).map(ObjectId);
        let reason = argument.map_or(Reason::NoSuchFunction, Reason::DependencyFailed);
        error == explain(reason)
    }

    /// Whether one more failure leaves an attempt.
    pub(crate) fn may_retry(&self) -> bool {
        match self.options.max_retries {
            Some(most) => self.spent < most,
            None => self.deaths < POISON_DEATHS,
        }
    }

    pub(crate) fn note(&mut self, text: &str) {
        self.history.push(format!("attempt {}: {text}", self.attempt));
        if self.history.len() > HISTORY_KEPT {
            self.history.remove(0);
        }
    }
}

impl Failure {
    /// How the attempts ended, numbered as listings number them. With so many that the first are not told any more, the
    /// numbers are those of the times that the task was given out.
    #[must_use]
    pub fn endings(&self) -> Vec<String> {
        if self.history.len() >= HISTORY_KEPT {
            return self.history.clone();
        }
        let made = self.history.iter().filter(|line| text_of(line) != NEVER_HANDED_OVER);
        numbered(&self.history, u32::try_from(made.count()).unwrap_or(u32::MAX))
    }
}

/// The ends of attempts of which the last one has this number. What a worker never got is no attempt.
fn numbered(history: &[String], last: u32) -> Vec<String> {
    let mut number = last;
    let shown = |line: &String| {
        let text = text_of(line);
        if text == NEVER_HANDED_OVER {
            return text.to_owned();
        }
        let shown = format!("attempt {number}: {text}");
        number = number.saturating_sub(1);
        shown
    };
    let mut endings: Vec<String> = history.iter().rev().map(shown).collect();
    endings.reverse();
    endings
}

/// A line of a history without the number that it was noted with.
fn text_of(line: &str) -> &str {
    line.split_once(": ").map_or(line, |(_, text)| text)
}

impl Act<'_> {
    /// A task's worker died: the task is tried again, if it may be.
    pub(crate) fn retry(&mut self, operation: OperationId, text: &str) {
        let mut entry = self.ray.entry_mut(operation);
        entry.deaths += 1;
        let again = entry.may_retry();
        if !again {
            entry.note(text);
        }
        drop(entry);
        if again {
            self.try_again(operation, text);
        } else {
            self.fail_task(operation, Reason::RetriesExhausted);
        }
    }

    /// Counts a failed attempt, and queues the task for the next one.
    pub(crate) fn try_again(&mut self, operation: OperationId, text: &str) {
        let now = self.now;
        self.ray.lineage_again(operation);
        let stage = std::mem::replace(&mut self.ray.entry_mut(operation).stage, Stage::Queued);
        if let Stage::Reported { store, .. } = stage {
            self.ray.index.reported.remove(&(store, operation));
        }
        let mut entry = self.ray.entry_mut(operation);
        entry.note(text);
        entry.spent += 1;
        let wait = back_off(entry.spent);
        entry.not_before = (wait.0 > 0).then(|| now.plus(wait));
        drop(entry);
        self.keep_calls(operation);
        self.requeue(operation);
    }

    /// Puts a task that was begun before into the queue again: by its id, so old work comes first. It takes
    /// references of its own anew. What it needs and is not there any more is made again first.
    fn requeue(&mut self, operation: OperationId) {
        let now = self.now;
        let entry = self.ray.entry(operation).expect("only recorded tasks are tried again");
        let name = entry.task.name.clone();
        let results = entry.results.clone();
        let mentioned: Vec<ObjectId> = entry.task.mentioned().map(|(_, object)| object).collect();
        let needed = entry.mentioned_once();
        let Some(slot) = self.ray.functions.slot(&name) else {
            self.fail_task(operation, Reason::NoSuchFunction);
            return;
        };
        if let Some(gone) = needed.iter().copied().find(|object| !self.ray.can_revive(*object)) {
            self.fail_task(operation, Reason::DependencyFailed(gone));
            return;
        }
        for object in needed {
            self.revive(object);
        }
        for result in &results {
            if !self.ray.objects.contains_key(result) {
                self.ray.revive_as(*result, operation, now);
            }
        }
        let holds: Vec<ObjectId> = mentioned.into_iter().chain(results).collect();
        for object in &holds {
            self.ray.grow(*object);
        }
        let mut entry = self.ray.entry_mut(operation);
        entry.holds = holds;
        entry.stage = Stage::Queued;
        drop(entry);
        self.ray.enqueue(operation, slot);
        let entry = self.ray.entry(operation).expect("it was just queued");
        let failed = entry.awaited().find(|argument| self.ray.has_failed(*argument));
        if let Some(argument) = failed {
            self.doomed.push_back((operation, argument));
        }
    }

    /// A task that a worker has and does not begin goes back into the queue. The references go back too, as far as
    /// the worker still has them.
    pub(crate) fn take_back(&mut self, id: WorkerId, run: Run) -> bool {
        let Some(worker) = self.ray.workers.get(&id) else { return false };
        if !worker.running.contains(&run) {
            return false;
        }
        let owner = self.ray.owner_of(id, worker);
        self.ray.stop_running(id, run);
        let entry = self.ray.entry(run.operation).expect("what runs is recorded");
        let results = entry.results.clone();
        let wanted: Vec<ObjectId> = entry.task.mentioned().map(|(_, object)| object).chain(results).collect();
        let mut holds = Vec::with_capacity(wanted.len());
        for object in wanted {
            if self.ray.owned(owner, object) > 0 {
                self.ray.disown(owner, object);
                holds.push(object);
            }
        }
        let name = entry_name(self.ray, run.operation);
        let mut entry = self.ray.entry_mut(run.operation);
        entry.holds = holds;
        entry.stage = Stage::Queued;
        drop(entry);
        if self.ray.is_cancelling(run.operation) {
            self.fail_task(run.operation, Reason::Cancelled);
            return true;
        }
        match self.ray.functions.slot(&name) {
            Some(slot) => self.ray.enqueue(run.operation, slot),
            None => self.fail_task(run.operation, Reason::NoSuchFunction),
        }
        let gone = self.ray.entry(run.operation).into_iter().flat_map(Entry::awaited);
        let gone = gone
            .into_iter()
            .find(|argument| !self.ray.objects.contains_key(argument) || self.ray.has_failed(*argument));
        if let Some(argument) = gone {
            self.doomed.push_back((run.operation, argument));
        }
        true
    }

    /// A worker never said that it has a task: that is none of the retries, and the worker is not trusted for a while.
    /// The number of the attempt is used up, because the worker may have the task all the same.
    pub(crate) fn undelivered(&mut self, runs: &[Run]) -> bool {
        let mut changed = false;
        for run in runs {
            let stage =
                self.ray.entry(run.operation).filter(|entry| entry.is_run(*run)).map(|entry| entry.stage);
            let Some(Stage::Running { worker, .. }) = stage else { continue };
            if !self.take_back(worker, *run) {
                continue;
            }
            changed = true;
            if !self.ray.entry(run.operation).is_some_and(Entry::was_cancelled) {
                self.ray.entry_mut(run.operation).note(NEVER_HANDED_OVER);
            }
            self.ray.worker_mut(worker).suspect_until = Some(self.now.plus(DurationMs(SUSPECT_MS)));
            self.ray.follow_idle(worker);
        }
        changed
    }

    /// A task will not be tried any more, or is not to be; what it has not made cannot be had.
    pub(crate) fn fail_task(&mut self, operation: OperationId, reason: Reason) {
        let Some(entry) = self.ray.entry(operation) else { return };
        if entry.is_finished() {
            return;
        }
        self.ray.dequeue(operation);
        self.ray.end_cancelling(operation);
        let cancelled = reason == Reason::Cancelled;
        let end = if cancelled { Stage::Cancelled } else { Stage::Failed };
        let mut entry = self.ray.entry_mut(operation);
        let holds = std::mem::take(&mut entry.holds);
        let stage = std::mem::replace(&mut entry.stage, end);
        entry.not_before = None;
        let text = explain(reason);
        entry.error = Bytes::from(text);
        let (results, error) = (entry.results.clone(), entry.error.clone());
        drop(entry);
        if let Stage::Reported { store, .. } = stage {
            self.ray.index.reported.remove(&(store, operation));
        }
        if !cancelled {
            self.ray.note_failure(operation, String::new(), error);
        }
        self.ray.end_watch(operation, End::GivenUp(reason));
        for result in results {
            if self.ray.is_awaited(result) {
                self.failing.push_back((result, reason));
            }
        }
        self.ray.lineage_finish(operation);
        self.end_calls(operation);
        for object in holds {
            self.drop_one(object);
        }
    }

    /// An object cannot be had: those who wait for it are told so, and tasks that need it fail.
    pub(crate) fn fail_object(&mut self, id: ObjectId, reason: Reason) {
        if !self.ray.is_awaited(id) {
            return;
        }
        self.detach_from_lost(id);
        if !self.ray.objects.contains_key(&id) {
            return;
        }
        let failure = Arc::new(self.ray.describe(&self.ray.objects[&id], reason));
        let members = self.ray.index.trees.members(id);
        let mut object = self.ray.object_mut(id);
        object.failure = Some(failure);
        object.target = Target::Canonical;
        let made = std::mem::take(&mut object.creation);
        let producer = object.producer;
        drop(object);
        if let Producer::Put { by, .. } = producer {
            self.ray.index.unwritten.remove(&(by, id));
        }
        for member in &members {
            let users = self.ray.users_of(*member);
            self.doomed.extend(users.into_iter().map(|operation| (operation, *member)));
        }
        self.serve(&members);
        self.redeliver(id);
        if let Producer::Task(operation) = producer {
            self.judge_task(operation);
        }
        if made {
            self.drop_one(id);
        }
    }

    /// What was stored for a result does not count.
    pub(crate) fn unmake(&mut self, id: ObjectId) {
        let Some(object) = self.ray.objects.get(&id) else { return };
        if object.target != Target::Canonical || object.failure.is_some() {
            return;
        }
        let stores: Vec<StoreId> = object.locations.iter().map(|location| location.store).collect();
        for store in stores {
            self.ray.displace(id, store);
            self.ray.outbox.free(store, id);
            self.ray.wanted.insert((id, store));
        }
        self.end_deliveries(id);
    }
}

impl Ray {
    fn describe(&self, object: &Object, reason: Reason) -> Failure {
        let Producer::Task(operation) = object.producer else {
            return Failure { reason, function: None, history: Vec::new() };
        };
        let entry = self.entry(operation);
        Failure {
            reason,
            function: entry.map(|entry| entry.task.name.clone()),
            history: entry.map(|entry| entry.history.clone()).unwrap_or_default(),
        }
    }
}

fn entry_name(ray: &Ray, operation: OperationId) -> FunctionName {
    ray.entry(operation).map(|entry| entry.task.name.clone()).expect("what runs is recorded")
}

/// How long the retry after that many failures waits: nothing, 1 s, 2 s, 4 s and so on.
fn back_off(failures: u32) -> DurationMs {
    match failures {
        0 | 1 => DurationMs(0),
        more => DurationMs((1000_u64 << (more - 2).min(16)).min(BACK_OFF_MS_MAX)),
    }
}

fn explain(reason: Reason) -> String {
    match reason {
        Reason::PutObject => "what a process put cannot be made again".to_owned(),
        Reason::RetriesExhausted => "worker died, attempts exhausted".to_owned(),
        Reason::LineageEvicted => "how it was made is not remembered any more".to_owned(),
        Reason::NoSuchFunction => "no worker has the function".to_owned(),
        Reason::DependencyFailed(object) => format!("its argument, object {object}, cannot be had"),
        Reason::ReconstructionDisabled => "its task is not to be tried again".to_owned(),
        Reason::Cancelled => "it was cancelled".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TimeMs;

    #[test]
    fn the_first_retry_is_at_once_and_later_ones_wait_longer_up_to_a_bound() {
        let waits: Vec<u64> = (1..=8).map(|failures| back_off(failures).0).collect();
        assert_eq!(waits, [0, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
        assert_eq!(back_off(u32::MAX), DurationMs(BACK_OFF_MS_MAX));
        assert_eq!(TimeMs(5).plus(back_off(2)), TimeMs(1005));
    }
}
