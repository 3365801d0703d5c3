//! When each connected task was last heard, which have missed a beat, and which have been silent for
//! too long.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use tripod_state::ids::{DurationMs, Incarnation, JobId, TaskId};
use tripod_state::task::Silence;

use super::suspects::Suspects;
use crate::awake::Moment;
use crate::clock::{millis, percent};
use crate::gateway::PRESENT_EVERY;

/// How long before its deadline a task is overdue, in percent of the heartbeat timeout. Clients beat
/// at 50, so at 45 before the end a beat is late by 5.
const OVERDUE_PERCENT: u64 = 45;

/// One life of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Connected {
    pub(super) job: JobId,
    pub(super) task: TaskId,
    pub(super) incarnation: Incarnation,
}

/// The silent tasks of each job, in ascending order.
pub(super) type Silent = BTreeMap<JobId, Vec<(TaskId, Incarnation)>>;

/// What a look at the timers has found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    /// Became overdue; they are still armed.
    pub(super) overdue: Silent,
    /// Their time is up; they are armed no more.
    pub(super) silent: Silent,
}

/// The heartbeat timers. A beat only moves a deadline; the heap learns of it when the old time comes
/// up, so that a beat costs no heap operation.
#[derive(Default)]
pub(super) struct TaskTimers {
    armed: HashMap<(JobId, TaskId), Armed>,
    /// One entry an armed task, keyed by when to look at it, which may since have moved; entries of
    /// another generation are void.
    heap: BinaryHeap<Reverse<(Moment, Connected, u64)>>,
    generation: u64,
    suspects: Suspects,
}

struct Armed {
    incarnation: Incarnation,
    /// When this node last heard the task, if it has.
    heard: Option<Moment>,
    deadline: Moment,
    timeout: DurationMs,
    /// Whether [`Due`] has told that the task is overdue, and it has not been heard since.
    overdue: bool,
    /// Which entry of the heap is this task's.
    generation: u64,
    /// Until it has sent its first heartbeat, if its interval is not known.
    first: Option<First>,
}

/// What is known of a task of which nobody knows how rarely it sends heartbeats.
struct First {
    /// When its time would be up if it sent them as the job asks.
    floor: Moment,
    /// The connection that has told last that the task is there.
    connection: Option<u64>,
}

impl TaskTimers {
    /// Starts the timer of a task that this node has not heard yet, in place of any that it has. `from` is when it may
    /// have begun to be silent.
    pub(super) fn arm(&mut self, who: Connected, from: Moment, silence: Silence) {
        self.insert(who, Armed::awaited(who.incarnation, None, from, silence));
    }

    /// Starts the timer of a task that has just connected. A life that is known already has only lost an answer.
    pub(super) fn connected(&mut self, who: Connected, now: Moment, silence: Silence) {
        match self.armed.get_mut(&(who.job, who.task)) {
            Some(armed) if armed.incarnation == who.incarnation => {
                let again = now.plus(armed.timeout);
                armed.extend(again, &mut self.suspects, who);
            }
            _ => {
                self.insert(who, Armed::awaited(who.incarnation, Some(now), now, silence));
            }
        }
    }

    /// A connection stands over which the task has registered. Gives whether its first heartbeat is still to come: if
    /// not, it is only heartbeats that count.
    pub(super) fn present(&mut self, who: Connected, now: Moment, connection: u64, silence: Silence) -> bool {
        if silence.first_ms.is_none() {
            return false;
        }
        let is_here =
            self.armed.get(&(who.job, who.task)).is_some_and(|armed| armed.incarnation == who.incarnation);
        if !is_here {
            self.arm(who, now, silence);
        }
        let armed = self.armed.get_mut(&(who.job, who.task)).expect("it is there by now");
        let Some(first) = &mut armed.first else { return false };
        first.connection = Some(connection);
        armed.extend(now.plus(silence.limit_ms()), &mut self.suspects, who);
        true
    }

    /// The client has closed that connection. If nothing else is known of the task, it is silent from now on. A new leader
    /// knows of no connection: another one would be told within [`PRESENT_EVERY`].
    pub(super) fn gone(&mut self, who: Connected, now: Moment, connection: u64, silence: Silence) {
        let Some(armed) = self.armed.get_mut(&(who.job, who.task)) else { return };
        let Some(first) = &mut armed.first else { return };
        if armed.incarnation != who.incarnation || first.connection.is_some_and(|known| known != connection) {
            return;
        }
        let from = match first.connection.take() {
            Some(_) => now,
            None => now.plus(DurationMs(millis(PRESENT_EVERY))),
        };
        let deadline = first.floor.max(from.plus(silence.tolerated_ms));
        // It is told until it was heard, so it may be told twice, which gives no more time.
        armed.deadline = armed.deadline.min(deadline);
        armed.timeout = silence.tolerated_ms;
        self.look_sooner(who);
    }

    /// A sign of life: the task has the whole of its timeout again, or longer if it already had. Gives
    /// the sign of life before this one, if this node heard it.
    pub(super) fn heard(&mut self, who: Connected, now: Moment, timeout: DurationMs) -> Option<Moment> {
        let deadline = now.plus(timeout);
        match self.armed.get_mut(&(who.job, who.task)) {
            Some(armed) if armed.incarnation == who.incarnation => {
                armed.timeout = timeout;
                let before = armed.heard.replace(now);
                match armed.first.take() {
                    None => armed.extend(deadline, &mut self.suspects, who),
                    // From now on it has no more time than others.
                    Some(First { floor, .. }) => {
                        armed.deadline = floor.max(deadline);
                        if std::mem::take(&mut armed.overdue) {
                            self.suspects.remove(who.job, who.task);
                        }
                        self.look_sooner(who);
                    }
                }
                before
            }
            // The state knows this life of the task, so its effect was missed or is still to come.
            _ => {
                self.insert(who, Armed::new(who.incarnation, Some(now), deadline, timeout));
                None
            }
        }
    }

    /// Tells of every task that became overdue, and takes out every task whose time is up.
    pub(super) fn take_due(&mut self, now: Moment) -> Due {
        let mut found = Due::default();
        while let Some(&Reverse((due, who, generation))) = self.heap.peek() {
            if due > now {
                break;
            }
            self.heap.pop();
            let Some(armed) = self.armed.get_mut(&(who.job, who.task)) else { continue };
            if armed.generation != generation {
                continue;
            }
            if armed.deadline <= now {
                self.armed.remove(&(who.job, who.task));
                found.silent.entry(who.job).or_default().push((who.task, who.incarnation));
                continue;
            }
            if !armed.overdue && armed.overdue_at() <= now {
                armed.overdue = true;
                found.overdue.entry(who.job).or_default().push((who.task, who.incarnation));
            }
            self.heap.push(Reverse((armed.next_look(), who, generation)));
        }
        for tasks in found.silent.values_mut().chain(found.overdue.values_mut()) {
            tasks.sort_unstable();
        }
        found
    }

    /// Lets the others of the job be told of these overdue tasks, except those that were heard
    /// meanwhile.
    pub(super) fn accuse(&mut self, job: JobId, overdue: &[(TaskId, Incarnation)]) {
        for &(task, incarnation) in overdue {
            let armed = self.armed.get(&(job, task));
            if let Some(armed) = armed.filter(|armed| armed.overdue && armed.incarnation == incarnation) {
                self.suspects.add(job, task, armed.deadline);
            }
        }
    }

    /// Lets the others of the job be told of these silent tasks while their end is being proposed,
    /// except those that were heard meanwhile.
    pub(super) fn convict(&mut self, job: JobId, silent: &[(TaskId, Incarnation)], now: Moment) {
        for &(task, _) in silent {
            if !self.armed.contains_key(&(job, task)) {
                self.suspects.add(job, task, now);
            }
        }
    }

    /// Nobody need be told of these tasks any more.
    pub(super) fn acquit(&mut self, job: JobId, tasks: &[(TaskId, Incarnation)]) {
        for &(task, _) in tasks {
            self.suspects.remove(job, task);
        }
    }

    /// How long until the time of the first overdue task of the job is up.
    pub(super) fn suspect(&self, job: JobId, now: Moment) -> Option<DurationMs> {
        self.suspects.soonest(job).map(|deadline| deadline.since(now))
    }

    /// Takes tasks back whose expiry could not be proposed: they are due again at once, unless they
    /// were armed anew meanwhile. The others of the job are still told of them.
    pub(super) fn put_back(&mut self, job: JobId, silent: &[(TaskId, Incarnation)], now: Moment) {
        for &(task, incarnation) in silent {
            if !self.armed.contains_key(&(job, task)) {
                let armed = Armed::new(incarnation, None, now, DurationMs(0));
                self.push(Connected { job, task, incarnation }, Armed { overdue: true, ..armed });
            }
        }
    }

    /// How long ago each of the job's tasks `0..tasks` was heard, of those that were since the timers began.
    pub(super) fn ages(&self, job: JobId, tasks: u32, now: Moment) -> Vec<(TaskId, Incarnation, DurationMs)> {
        let ids = (0..tasks).map_while(|id| i32::try_from(id).ok()).map(TaskId);
        let heard = ids.filter_map(|task| {
            let armed = self.armed.get(&(job, task))?;
            Some((task, armed.incarnation, now.since(armed.heard?)))
        });
        heard.collect()
    }

    pub(super) fn forget_job(&mut self, job: JobId) {
        self.armed.retain(|(of, _), _| *of != job);
        self.suspects.forget_job(job);
    }

    pub(super) fn clear(&mut self) {
        self.armed.clear();
        self.heap.clear();
        self.suspects.clear();
    }

    /// How many have missed a heartbeat.
    pub(super) fn overdue(&self) -> u64 {
        self.armed.values().filter(|armed| armed.overdue).count() as u64
    }

    pub(super) fn len(&self) -> usize {
        self.armed.len()
    }

    /// The deadline of an armed task has come nearer, of which the heap learns by itself only when the old one is up.
    fn look_sooner(&mut self, who: Connected) {
        if let Some(armed) = self.armed.remove(&(who.job, who.task)) {
            self.push(who, armed);
        }
    }

    /// Arms a task that is under no suspicion.
    fn insert(&mut self, who: Connected, armed: Armed) {
        self.suspects.remove(who.job, who.task);
        self.push(who, armed);
    }

    fn push(&mut self, who: Connected, mut armed: Armed) {
        self.generation += 1;
        armed.generation = self.generation;
        self.heap.push(Reverse((armed.next_look(), who, self.generation)));
        self.armed.insert((who.job, who.task), armed);
    }
}

impl Armed {
    fn new(incarnation: Incarnation, heard: Option<Moment>, deadline: Moment, timeout: DurationMs) -> Self {
        Self { incarnation, heard, deadline, timeout, overdue: false, generation: 0, first: None }
    }

    /// Of a task that may be silent from `from` on.
    fn awaited(incarnation: Incarnation, heard: Option<Moment>, from: Moment, silence: Silence) -> Self {
        let limit_ms = silence.limit_ms();
        let floor = from.plus(silence.tolerated_ms);
        let first = silence.first_ms.map(|_| First { floor, connection: None });
        Self { first, ..Self::new(incarnation, heard, from.plus(limit_ms), limit_ms) }
    }

    /// It was heard, and has time until then, or longer if it already had.
    fn extend(&mut self, deadline: Moment, suspects: &mut Suspects, who: Connected) {
        self.deadline = self.deadline.max(deadline);
        if std::mem::take(&mut self.overdue) {
            suspects.remove(who.job, who.task);
        }
    }

    fn overdue_at(&self) -> Moment {
        self.deadline.minus(percent(self.timeout, OVERDUE_PERCENT))
    }

    /// When the timer says something new, if the task is not heard before. A beat only puts it off:
    /// even for an overdue task, the next time is later than the deadline that it had.
    fn next_look(&self) -> Moment {
        if self.overdue { self.deadline } else { self.overdue_at() }
    }
}

#[cfg(test)]
#[path = "tasks_test.rs"]
mod tests;
