//! The time-outs of tasks: who is given up, when, and who is not.

use super::*;
use crate::awake::Awake;

const JOB: JobId = JobId(1);
const TIMEOUT: DurationMs = DurationMs(1000);
/// Of a task of which nobody knows when its first heartbeat comes.
const UNHEARD: Silence = Silence { own_ms: TIMEOUT, tolerated_ms: TIMEOUT, first_ms: Some(DurationMs(6000)) };

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
    assert_eq!(scene.silent(1500), silent(&[(0, 7)]), "the other one may be as slow as its program was told");
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
