//! Each task that a scheduler accepted runs as one attempt at a time, and comes to an end that whoever asked for it is
//! told.

use std::collections::{BTreeMap, BTreeSet};

use tripod_state::ids::{LogIndex, NodeId};
use tripod_state::ray::Ray;
use tripod_state::ray::ids::ObjectId;
use tripod_state::ray::view::{Availability, WorkerLife};

/// An operation and the number of an attempt of it.
type Attempt = (u64, u32);

/// What schedulers were given to do, what workers began and what drivers read.
#[derive(Debug, Default)]
pub(crate) struct ScheduledWork {
    /// Which worker began an attempt, as workers say.
    begun: BTreeMap<Attempt, u64>,
    /// Which worker an attempt was given to, as nodes say.
    given: BTreeMap<Attempt, u64>,
    /// The newest attempt of an operation, and at which index it was seen.
    newest: BTreeMap<u64, (LogIndex, u32)>,
    /// The index at which so many tasks had succeeded.
    succeeded: (LogIndex, u64),
    /// Tasks that were begun again.
    again: Vec<String>,
    /// What the calls of tasks made, by the task and the place of the call, as long as the task refers to it.
    called: BTreeMap<(u64, u32), Vec<u64>>,
    /// Of those, what can never be had.
    failed: BTreeSet<u64>,
    acknowledged: BTreeSet<u64>,
    read: BTreeSet<u64>,
    looks: u64,
    emptied: bool,
}

impl ScheduledWork {
    /// A worker begins an attempt.
    pub(crate) fn begun(&mut self, operation: u64, attempt: u32, worker: u64) -> Result<(), String> {
        if let Some(before) = self.begun.keys().find(|(known, _)| *known == operation) {
            self.again.push(format!("task {operation}, attempt {} and {attempt}", before.1));
        }
        match self.begun.insert((operation, attempt), worker) {
            Some(other) => {
                Err(format!("attempt {attempt} of task {operation} was begun by worker {other} and {worker}"))
            }
            None => Ok(()),
        }
    }

    /// An attempt of a task was told what this call of it makes: the same as an earlier one, unless that failed.
    pub(crate) fn called(&mut self, task: u64, place: u32, made: &[u64]) -> Result<(), String> {
        let before = self.called.insert((task, place), made.to_vec());
        match before {
            Some(before) if before != made && !before.iter().any(|object| self.failed.contains(object)) => {
                Err(format!("call {place} of task {task} made {before:?}, and then {made:?}"))
            }
            _ => Ok(()),
        }
    }

    /// A task does not need any more what its calls made.
    pub(crate) fn let_go(&mut self, task: u64) {
        self.called.retain(|(caller, _), _| *caller != task);
    }

    /// A worker begins a task that calls an exported function. `needed`: the last version that had been exported when
    /// the task was submitted.
    pub(crate) fn knows(
        &mut self,
        worker: u64,
        function: &str,
        version: Option<u64>,
        needed: u64,
    ) -> Result<(), String> {
        if version.is_some_and(|version| version >= needed) {
            return Ok(());
        }
        Err(format!(
            "worker {worker} calls {function} of version {version:?}, and {needed} had been exported"
        ))
    }

    /// A driver was told that this object will be made.
    pub(crate) fn acknowledged(&mut self, object: u64) -> Result<(), String> {
        if self.acknowledged.insert(object) {
            return Ok(());
        }
        Err(format!("object {object} is the result of two tasks"))
    }

    /// A driver has read an object, or why it cannot be had.
    pub(crate) fn read(&mut self, object: u64) {
        self.read.insert(object);
    }

    /// Everything that was dropped is gone.
    pub(crate) fn empty(&mut self) -> Result<(), String> {
        self.emptied = true;
        Ok(())
    }

    /// A node's scheduler after it has applied that index.
    pub(crate) fn look(&mut self, node: NodeId, applied: LogIndex, ray: &Ray) -> Result<(), String> {
        self.looks += 1;
        ray.check().map_err(|what| format!("node {node}, index {applied}: {what}"))?;
        for worker in ray.workers() {
            let dead = matches!(worker.life, WorkerLife::Dead(_));
            for run in &worker.running {
                let (operation, attempt) = (run.operation.0, run.attempt.0);
                let first = *self.given.entry((operation, attempt)).or_insert(worker.id.0);
                if first != worker.id.0 || dead {
                    return Err(format!(
                        "node {node}, index {applied}: attempt {attempt} of task {operation} was given to worker \
                         {first} and is at {}, which is {:?}",
                        worker.id, worker.life
                    ));
                }
                let newest = self.newest.entry(operation).or_insert((applied, attempt));
                if applied >= newest.0 && attempt < newest.1 {
                    return Err(format!(
                        "node {node}, index {applied}: attempt {attempt} of task {operation} is current after {}",
                        newest.1
                    ));
                }
                *newest = (*newest).max((applied, attempt));
            }
        }
        let failed = |object: &u64| {
            let found = ray.availability(ObjectId(*object));
            matches!(found, Some(Availability::Failed(_)))
        };
        self.failed.extend(self.called.values().flatten().copied().filter(failed));
        let (succeeded, (index, before)) = (ray.totals().succeeded, self.succeeded);
        if applied >= index {
            if succeeded < before {
                return Err(format!(
                    "node {node}, index {applied}: {succeeded} tasks succeeded, after {before}"
                ));
            }
            self.succeeded = (applied, succeeded);
        }
        Ok(())
    }

    /// The run is over. `healthy`: no process died, and no node was cut off from them.
    pub(crate) fn end(&self, healthy: bool) -> Result<(), String> {
        if !self.emptied {
            return Err("objects are left that nothing refers to".to_owned());
        }
        match self.again.first() {
            Some(again) if healthy => Err(format!("every worker was healthy, and one ran again: {again}")),
            _ => Ok(()),
        }
    }

    /// How many attempts workers began.
    pub(crate) fn attempts(&self) -> u64 {
        self.begun.len() as u64
    }

    /// How many objects drivers read.
    pub(crate) fn results(&self) -> u64 {
        self.read.len() as u64
    }

    /// How often a scheduler was looked at as a whole.
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_has_one_worker() {
        let mut rule = ScheduledWork::default();
        assert_eq!(rule.begun(1, 1, 7), Ok(()));
        assert_eq!(rule.begun(1, 2, 8), Ok(()));
        let twice = rule.begun(1, 2, 7).unwrap_err();
        assert_eq!(twice, "attempt 2 of task 1 was begun by worker 8 and 7");
    }

    #[test]
    fn a_task_runs_again_only_if_something_died() {
        let mut rule = ScheduledWork::default();
        rule.begun(1, 1, 7).unwrap();
        rule.empty().unwrap();
        assert_eq!(rule.end(true), Ok(()));
        rule.begun(1, 3, 8).unwrap();
        assert_eq!(rule.end(false), Ok(()));
        assert!(rule.end(true).unwrap_err().ends_with("task 1, attempt 1 and 3"));
    }

    #[test]
    fn a_call_of_a_task_makes_the_same_again_until_the_task_lets_it_go() {
        let mut rule = ScheduledWork::default();
        assert_eq!(rule.called(1, 0, &[5]), Ok(()));
        assert_eq!(rule.called(1, 0, &[5]), Ok(()));
        assert_eq!(rule.called(1, 1, &[6]), Ok(()));
        assert_eq!(rule.called(1, 0, &[7]).unwrap_err(), "call 0 of task 1 made [5], and then [7]");
        rule.let_go(1);
        assert_eq!(rule.called(1, 0, &[8]), Ok(()));
        rule.failed.insert(8);
        assert_eq!(rule.called(1, 0, &[9]), Ok(()));
    }

    #[test]
    fn a_worker_has_every_version_that_was_exported_before_its_task() {
        let mut rule = ScheduledWork::default();
        assert_eq!(rule.knows(1, "f", Some(3), 2), Ok(()));
        assert!(rule.knows(1, "f", Some(1), 2).is_err());
        assert!(rule.knows(1, "f", None, 1).is_err());
    }

    #[test]
    fn what_is_left_is_noticed_and_results_have_one_task() {
        let mut rule = ScheduledWork::default();
        assert!(rule.end(false).is_err());
        rule.acknowledged(4).unwrap();
        assert!(rule.acknowledged(4).is_err());
    }
}
