//! Which task goes to which worker: upstream's choice, from sorted sets instead of scans.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;

use crate::ids::TimeMs;
use crate::ray::Ray;
use crate::ray::command::{Argument, Assignment, Task};
use crate::ray::function::Slot;
use crate::ray::ids::{Attempt, OperationId, StoreId, WorkerId};
use crate::ray::queue::{Far, Near};
use crate::ray::resources::{Class, Needs, Turn};
use crate::ray::unfit::Unfit;

/// Tasks of one function that are looked at for one worker: of very many that are to go elsewhere, those behind these
/// wait until the first ones have gone.
const LOOKED_AT_MAX: usize = 1_000;

/// The turns of the highest and of the lowest priority.
const FIRST: Turn = Reverse(i32::MAX);
const LAST: Turn = Reverse(i32::MIN);

/// A task that a worker could be given: the smallest is the best.
type Choice = (Turn, u32, OperationId);

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
        self.hint_with(task, &Needs::default())
    }

    /// [`Ray::hint`] for a task that needs something.
    #[must_use]
    pub fn hint_with(&self, task: &Task, needs: &Needs) -> Option<WorkerId> {
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
        let class = needs.class();
        let able = self.idle.iter().filter(|worker| function.workers.contains(*worker));
        let able = able.filter(|worker| self.holds(**worker, &class));
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

    /// The ready task that a worker should be given: of those of the highest priority the one with the fewest arguments
    /// to fetch, of equal ones the earliest.
    fn best_for(&self, worker: WorkerId, store: StoreId, unfit: &Unfit) -> Option<OperationId> {
        let mut best = None;
        let mut behind: Bound<Far> = Bound::Unbounded;
        // From one class of one function that has ready tasks to the next.
        loop {
            let ready = self.index.queue.ready.range::<_, Far>((behind.as_ref(), Bound::<&Far>::Unbounded));
            let next = ready.into_iter().next();
            let Some((slot, class)) = next.map(|(slot, class, ..)| (*slot, class.clone())) else { break };
            let knows = self.functions.get(slot).is_some_and(|known| known.workers.contains(&worker));
            if !knows {
                let next = Slot(slot.0.saturating_add(1));
                behind = Bound::Included((next, Class::default(), FIRST, 0, OperationId(0)));
                continue;
            }
            if self.holds(worker, &class) {
                let first = self.first_of((slot, &class), store, unfit);
                best = [best, first].into_iter().flatten().min();
            }
            behind = Bound::Excluded((slot, class, LAST, u32::MAX, OperationId(u64::MAX)));
        }
        best.map(|(.., operation): Choice| operation)
    }

    /// The best of one function and class, for workers of a store.
    fn first_of(&self, (slot, class): (Slot, &Class), store: StoreId, unfit: &Unfit) -> Option<Choice> {
        let queue = &self.index.queue;
        let suits = |operation: OperationId| !self.is_for_others(operation, store, unfit);
        let from: Far = (slot, class.clone(), FIRST, 0, OperationId(0));
        let far = queue.ready.range(from..).take_while(|(of, needs, ..)| *of == slot && needs == class);
        let far = far.take(LOOKED_AT_MAX).find(|(.., operation)| suits(*operation));
        let far = far.map(|(_, _, turn, missing, operation)| (*turn, *missing, *operation));
        let from: Near = (slot, class.clone(), store, FIRST, 0, OperationId(0));
        let near = queue.near.range(from..);
        let near = near.take_while(|(of, needs, at, ..)| (*of, *at) == (slot, store) && needs == class);
        let near = near.take(LOOKED_AT_MAX).find(|(.., operation)| suits(*operation));
        let near = near.map(|(_, _, _, turn, missing, operation)| (*turn, *missing, *operation));
        [far, near].into_iter().flatten().min()
    }
}
