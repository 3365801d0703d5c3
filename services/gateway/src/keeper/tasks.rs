//! When each connected task was last heard, which have missed a beat, and which have been silent for
//! too long.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use tripod_state::ids::{DurationMs, Incarnation, JobId, TaskId};
use tripod_state::task::Silence;

use super::suspects::Suspects;
use crate::awake::Moment;
use crate::clock::percent;

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

    /// The client has closed that connection. If nothing else is known of the task, it is silent from now on.
    pub(super) fn gone(&mut self, who: Connected, now: Moment, connection: u64, silence: Silence) {
        let Some(armed) = self.armed.get_mut(&(who.job, who.task)) else { return };
        let Some(first) = &mut armed.first else { return };
        if armed.incarnation != who.incarnation || first.connection != Some(connection) {
            return;
        }
        first.connection = None;
        armed.deadline = first.floor.max(now.plus(silence.tolerated_ms));
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

    pub(super) fn forget_job(&mut self, job: JobId) {
        self.armed.retain(|(of, _), _| *of != job);
        self.suspects.forget_job(job);
    }

    pub(super) fn clear(&mut self) {
        self.armed.clear();
        self.heap.clear();
        self.suspects.clear();
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
mod tests {
    use super::*;
    use crate::awake::Awake;

    const JOB: JobId = JobId(1);
    const TIMEOUT: DurationMs = DurationMs(1000);
    /// Of a task of which nobody knows when its first heartbeat comes.
    const UNHEARD: Silence =
        Silence { own_ms: TIMEOUT, tolerated_ms: TIMEOUT, first_ms: Some(DurationMs(6000)) };

    fn who(task: i32, incarnation: u64) -> Connected {
        Connected { job: JOB, task: TaskId(task), incarnation: Incarnation(incarnation) }
    }

    fn silent(tasks: &[(i32, u64)]) -> Silent {
        if tasks.is_empty() {
            return Silent::new();
        }
        let tasks = tasks.iter().map(|&(task, incarnation)| (TaskId(task), Incarnation(incarnation)));
        BTreeMap::from([(JOB, tasks.collect())])
    }

    /// Timers with a start from which tests count.
    struct Scene {
        start: Moment,
        timers: TaskTimers,
    }

    impl Scene {
        fn new() -> Self {
            let start = Awake::default().now().plus(TIMEOUT);
            Self { start, timers: TaskTimers::default() }
        }

        /// `after` milliseconds from the start.
        fn at(&self, after: u64) -> Moment {
            self.start.plus(DurationMs(after))
        }

        fn arm(&mut self, task: i32, incarnation: u64, deadline: u64) {
            let silence = Silence { own_ms: TIMEOUT, tolerated_ms: TIMEOUT, first_ms: None };
            self.timers.arm(who(task, incarnation), self.at(deadline).minus(TIMEOUT), silence);
        }

        fn connected(&mut self, task: i32, incarnation: u64, now: u64) {
            self.timers.connected(who(task, incarnation), self.at(now), UNHEARD);
        }

        fn present(&mut self, task: i32, incarnation: u64, now: u64, connection: u64) -> bool {
            self.timers.present(who(task, incarnation), self.at(now), connection, UNHEARD)
        }

        fn gone(&mut self, task: i32, incarnation: u64, now: u64, connection: u64) {
            self.timers.gone(who(task, incarnation), self.at(now), connection, UNHEARD);
        }

        fn heard(&mut self, task: i32, incarnation: u64, now: u64) -> Option<Moment> {
            self.timers.heard(who(task, incarnation), self.at(now), TIMEOUT)
        }

        fn due(&mut self, now: u64) -> Due {
            self.timers.take_due(self.at(now))
        }

        /// Who is silent, whoever is overdue.
        fn silent(&mut self, now: u64) -> Silent {
            self.due(now).silent
        }

        fn accuse(&mut self, overdue: &Silent) {
            self.timers.accuse(JOB, &overdue[&JOB]);
        }

        fn convict(&mut self, silent: &Silent, now: u64) {
            self.timers.convict(JOB, &silent[&JOB], self.at(now));
        }

        fn suspect(&self, now: u64) -> Option<u64> {
            self.timers.suspect(JOB, self.at(now)).map(|within| within.0)
        }
    }

    #[test]
    fn a_task_that_is_heard_in_time_is_never_silent() {
        let mut scene = Scene::new();
        scene.arm(0, 7, 1000);
        scene.arm(1, 8, 1000);

        assert_eq!(scene.heard(0, 7, 900), None);

        assert_eq!(scene.silent(999), silent(&[]));
        assert_eq!(scene.silent(1000), silent(&[(1, 8)]));
        assert_eq!(scene.heard(0, 7, 901), Some(scene.at(900)));
        assert_eq!(scene.silent(1900), silent(&[]));
        assert_eq!(scene.silent(1901), silent(&[(0, 7)]));
        assert_eq!(scene.timers.len(), 0);
    }

    #[test]
    fn a_beat_does_not_take_away_the_time_that_a_new_leader_gave() {
        let mut scene = Scene::new();
        scene.arm(0, 7, 3000);
        assert_eq!(scene.heard(0, 7, 100), None);
        assert_eq!(scene.silent(2999), silent(&[]));
        assert_eq!(scene.silent(3000), silent(&[(0, 7)]));
    }

    #[test]
    fn silent_tasks_of_one_moment_come_together_in_order() {
        let mut scene = Scene::new();
        for task in [2, 0, 1] {
            scene.arm(task, 7, 10 - task as u64);
        }
        assert_eq!(scene.silent(10), silent(&[(0, 7), (1, 7), (2, 7)]));
    }

    #[test]
    fn a_new_life_voids_the_timer_of_the_old_one() {
        let mut scene = Scene::new();
        scene.arm(0, 7, 10);
        scene.arm(0, 8, 20);

        assert_eq!(scene.silent(15), silent(&[]));
        assert_eq!(scene.silent(20), silent(&[(0, 8)]));
        assert_eq!(scene.silent(99), silent(&[]), "once");
    }

    #[test]
    fn a_task_that_could_not_be_expired_is_due_again() {
        let mut scene = Scene::new();
        scene.arm(0, 7, 10);
        let taken = scene.silent(10);
        scene.timers.put_back(JOB, &taken[&JOB], scene.at(10));
        assert_eq!(scene.silent(10), taken);

        scene.arm(0, 8, 50);
        scene.timers.put_back(JOB, &taken[&JOB], scene.at(11));
        assert_eq!(scene.silent(49), silent(&[]), "a newer life has its own time");
    }

    #[test]
    fn a_deleted_job_has_no_timers_and_no_suspects() {
        let mut scene = Scene::new();
        scene.arm(0, 7, 1000);
        let overdue = scene.due(600).overdue;
        scene.accuse(&overdue);
        scene.timers.forget_job(JOB);
        assert_eq!(scene.suspect(600), None);
        scene.accuse(&overdue);
        assert_eq!(scene.suspect(600), None, "too late");
        assert_eq!(scene.due(9999), Due::default());
    }

    #[test]
    fn a_task_is_overdue_once_before_it_is_silent() {
        let mut scene = Scene::new();
        scene.heard(0, 7, 0);
        assert_eq!(scene.due(549), Due::default());
        assert_eq!(scene.due(550), Due { overdue: silent(&[(0, 7)]), silent: silent(&[]) });
        assert_eq!(scene.suspect(550), None, "nobody has accused it");
        assert_eq!(scene.due(999), Due::default());
        assert_eq!(scene.due(1000), Due { overdue: silent(&[]), silent: silent(&[(0, 7)]) });
    }

    #[test]
    fn a_suspect_that_is_heard_is_none_and_may_become_one_again() {
        let mut scene = Scene::new();
        scene.heard(0, 7, 0);
        scene.heard(1, 8, 100);
        for now in [550, 650] {
            let overdue = scene.due(now).overdue;
            scene.accuse(&overdue);
        }
        assert_eq!(scene.suspect(700), Some(300), "the first one's deadline");

        scene.heard(0, 7, 700);
        assert_eq!(scene.suspect(700), Some(400), "the other's");
        scene.heard(1, 8, 800);
        assert_eq!(scene.suspect(800), None);

        assert_eq!(scene.due(1249), Due::default());
        assert_eq!(scene.due(1250).overdue, silent(&[(0, 7)]));
        assert_eq!(scene.due(1350).overdue, silent(&[(1, 8)]));
    }

    #[test]
    fn who_was_heard_meanwhile_is_not_accused() {
        let mut scene = Scene::new();
        scene.heard(0, 7, 0);
        let overdue = scene.due(550).overdue;
        scene.heard(0, 7, 551);
        scene.accuse(&overdue);
        assert_eq!(scene.suspect(552), None);
    }

    #[test]
    fn the_silent_are_told_of_until_their_end_is_settled() {
        let mut scene = Scene::new();
        scene.heard(0, 7, 0);
        let gone = scene.silent(1000);
        scene.convict(&gone, 1000);
        assert_eq!(scene.suspect(1010), Some(0), "while the expiry is proposed");

        scene.timers.put_back(JOB, &gone[&JOB], scene.at(1020));
        assert_eq!(scene.suspect(1020), Some(0), "while it waits to be proposed again");
        assert_eq!(scene.silent(1020), gone);

        scene.timers.acquit(JOB, &gone[&JOB]);
        assert_eq!(scene.suspect(1030), None);
    }

    #[test]
    fn a_task_that_comes_back_while_its_end_is_proposed_is_no_suspect() {
        let mut scene = Scene::new();
        scene.heard(0, 7, 0);
        let gone = scene.silent(1000);
        scene.convict(&gone, 1000);
        scene.timers.put_back(JOB, &gone[&JOB], scene.at(1005));

        scene.heard(0, 7, 1010);

        assert_eq!(scene.suspect(1010), None);
        assert_eq!(scene.silent(2009), silent(&[]));
    }

    #[test]
    fn until_its_first_heartbeat_a_task_has_longer_and_then_no_longer_than_others() {
        let mut scene = Scene::new();
        scene.connected(0, 7, 0);
        scene.connected(1, 8, 0);
        assert_eq!(scene.heard(0, 7, 500), Some(scene.at(0)));
        assert_eq!(scene.silent(1499), silent(&[]));
        assert_eq!(
            scene.silent(1500),
            silent(&[(0, 7)]),
            "the other one may be as slow as its program was told"
        );
        scene.connected(1, 8, 2000);
        assert_eq!(scene.silent(7999), silent(&[]), "it only lost an answer");
        assert_eq!(scene.silent(8000), silent(&[(1, 8)]));
    }

    #[test]
    fn a_connection_that_stands_keeps_a_task_until_its_first_heartbeat_and_no_longer() {
        let mut scene = Scene::new();
        scene.connected(0, 7, 0);
        for now in [0, 5000, 10_000] {
            assert!(scene.present(0, 7, now, 1));
        }
        assert_eq!(scene.silent(15_999), silent(&[]));
        scene.heard(0, 7, 15_999);
        assert!(!scene.present(0, 7, 16_000, 1), "from now on it is heartbeats that count");
        assert_eq!(scene.silent(16_999), silent(&[(0, 7)]));
    }

    #[test]
    fn a_task_whose_connection_ends_before_its_first_heartbeat_is_silent_from_then_on() {
        let mut scene = Scene::new();
        scene.connected(0, 7, 0);
        scene.present(0, 7, 0, 1);
        scene.gone(0, 7, 300, 2);
        assert_eq!(scene.silent(1300), silent(&[]), "another connection says nothing of this one");
        scene.gone(0, 7, 2000, 1);
        assert_eq!(scene.due(2549), Due::default());
        assert_eq!(scene.due(2550).overdue, silent(&[(0, 7)]), "the others are warned in time");
        assert_eq!(scene.silent(2999), silent(&[]));
        assert_eq!(scene.silent(3000), silent(&[(0, 7)]));
    }

    #[test]
    fn a_task_that_came_back_by_another_connection_does_not_end_with_the_old_one() {
        let mut scene = Scene::new();
        scene.connected(0, 7, 0);
        scene.present(0, 7, 0, 1);
        scene.present(0, 7, 100, 2);
        scene.gone(0, 7, 200, 1);
        assert_eq!(scene.silent(6099), silent(&[]));
        assert_eq!(scene.silent(6100), silent(&[(0, 7)]));
    }
}
