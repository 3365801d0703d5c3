//! Which task goes to which worker: upstream's choice, from sorted sets instead of scans.

use std::collections::BTreeMap;

use crate::ids::TimeMs;
use crate::ray::Ray;
use crate::ray::command::{Argument, Assignment, Task};
use crate::ray::function::Slot;
use crate::ray::ids::{Attempt, OperationId, StoreId, WorkerId};
use crate::ray::unfit::Unfit;

/// Tasks of one function that are looked at for one worker: of very many that are to go elsewhere, those behind these
/// wait until the first ones have gone.
const LOOKED_AT_MAX: usize = 1_000;

impl Ray {
    /// The assignments that are due now, at most `most`, by the rule of the job's algorithm: idle workers in the
    /// order of their list, each with the task that suits it best; a worker that is full gives its place to the last
    /// of the list. Of workers with several slots, those with the fewest tasks come first. A worker whose slots are taken
    /// by tasks that wait is given only what some task waits for: anything else would wait there, too.
    #[must_use]
    pub fn plan(&self, now: TimeMs, most: usize) -> Vec<Assignment> {
        self.plan_around(now, most, &Unfit::default())
    }

    /// [`Ray::plan`], where a task that needs an object which cannot come to a worker's store is left to the workers of
    /// other stores, as long as there are some that could do it.
    #[must_use]
    pub fn plan_around(&self, now: TimeMs, most: usize, unfit: &Unfit) -> Vec<Assignment> {
        let mut planned = Vec::new();
        if self.idle.is_empty() || self.index.queue.waiting.is_empty() {
            return planned;
        }
        // Cloning shares everything; what is planned is taken out of the copy.
        let mut trial = self.clone();
        trial.wake_delayed(now);
        let mut idle: Vec<WorkerId> = self.idle.iter().copied().collect();
        let mut load: BTreeMap<WorkerId, usize> = BTreeMap::new();
        let mut needed = None;
        let mut allowed = 1;
        loop {
            let mut place = 0;
            // How many those have that may be given another one, at least.
            let mut fewest: Option<usize> = None;
            while place < idle.len() {
                if planned.len() >= most || trial.index.queue.ready.is_empty() {
                    return planned;
                }
                let id = idle[place];
                let worker = &self.workers[&id];
                let carries = load.entry(id).or_insert(worker.running.len());
                if *carries >= allowed {
                    fewest = Some(fewest.map_or(*carries, |fewest| fewest.min(*carries)));
                    place += 1;
                    continue;
                }
                let best = if !self.trusted(id, now) {
                    None
                } else if *carries < worker.own_capacity() {
                    trial.best_for(id, worker.store, unfit)
                } else {
                    let needed = needed.get_or_insert_with(|| trial.needed());
                    let first = needed.take(&trial, id, worker.store, unfit);
                    let nothing = first.is_none() && planned.is_empty();
                    first.or_else(|| {
                        nothing.then(|| trial.last_resort((id, worker.store), unfit, needed)).flatten()
                    })
                };
                // One whose earlier results are just being freed there has to wait for that; so does this worker.
                let best = best.filter(|operation| self.is_clear(*operation, worker.store));
                let Some(operation) = best else {
                    place += 1;
                    continue;
                };
                let attempt = self.entry(operation).map_or(Attempt(0), |entry| entry.attempt);
                planned.push(Assignment { operation, attempt: Attempt(attempt.0 + 1), worker: id });
                trial.dequeue(operation);
                *carries += 1;
                if *carries >= self.capacity(id, worker) {
                    idle.swap_remove(place);
                } else {
                    fewest = Some(fewest.map_or(*carries, |fewest| fewest.min(*carries)));
                    place += 1;
                }
            }
            let Some(fewest) = fewest else { return planned };
            allowed = fewest + 1;
        }
    }

    /// The worker that a task which is submitted now would be given to, if nothing else waits: the first of those
    /// with the fewest tasks. `None`: the planner has to look.
    #[must_use]
    pub fn hint(&self, task: &Task) -> Option<WorkerId> {
        if self.idle.is_empty() || !self.index.queue.ready.is_empty() {
            return None;
        }
        let function = self.functions.get(self.functions.slot(&task.name)?)?;
        let awaited = task.arguments.iter().filter_map(|argument| match argument {
            Argument::Object(object) => Some(*object),
            Argument::Value { .. } => None,
        });
        if awaited.into_iter().any(|object| self.available(object).is_none()) {
            return None;
        }
        let able = self.idle.iter().filter(|worker| function.workers.contains(*worker));
        able.filter_map(|id| Some((id, self.workers.get(id)?)))
            .filter(|(_, worker)| {
                worker.suspect_until.is_none() && worker.running.len() < worker.own_capacity()
            })
            .min_by_key(|(_, worker)| worker.running.len())
            .map(|(id, _)| *id)
    }

    /// When the next task may be tried again, or the next worker be given one: after `now`, for what is due already
    /// waits for something else.
    #[must_use]
    pub fn next_due(&self, now: TimeMs) -> Option<TimeMs> {
        let later = TimeMs(now.0.saturating_add(1));
        let delayed = self.index.queue.delayed.range((later, OperationId(0))..).next().map(|(time, _)| *time);
        let suspects = self.idle.iter().filter_map(|worker| self.workers.get(worker)?.suspect_until);
        let suspects = suspects.filter(|until| *until > now);
        let suspect = if self.index.queue.ready.is_empty() { None } else { suspects.min() };
        delayed.into_iter().chain(suspect).min()
    }

    /// The ready task that a worker should be given: the one with the fewest arguments to fetch, of equal ones the
    /// earliest.
    fn best_for(&self, worker: WorkerId, store: StoreId, unfit: &Unfit) -> Option<OperationId> {
        let queue = &self.index.queue;
        let suits = |operation: OperationId| !self.is_for_others(operation, store, unfit);
        let mut best: Option<(u32, OperationId)> = None;
        let mut from = Slot(0);
        // From one function that has ready tasks to the next.
        while let Some((slot, ..)) = queue.ready.range((from, 0, OperationId(0))..).next() {
            let slot = *slot;
            if self.functions.get(slot).is_some_and(|function| function.workers.contains(&worker)) {
                let far = queue.ready.range((slot, 0, OperationId(0))..).take_while(|(of, ..)| *of == slot);
                let far = far.take(LOOKED_AT_MAX).find(|(.., operation)| suits(*operation));
                let far = far.map(|(_, missing, operation)| (*missing, *operation));
                let near = queue.near.range((slot, store, 0, OperationId(0))..);
                let near = near.take_while(|(of, at, ..)| (*of, *at) == (slot, store));
                let near = near.take(LOOKED_AT_MAX).find(|(.., operation)| suits(*operation));
                let near = near.map(|(_, _, missing, operation)| (*missing, *operation));
                best = [best, far, near].into_iter().flatten().min();
            }
            from = Slot(slot.0 + 1);
        }
        best.map(|(_, operation)| operation)
    }
}
