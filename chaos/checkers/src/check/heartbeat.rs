//! Who beats is never declared dead; who is silent is, in time.
//!
//! A beat arrives at some moment between its beginning and its end, so the longest silence that the cluster
//! can have seen lies between the beginning of one acknowledged beat and the end of the next. Only a task
//! that may have been silent for the whole time-out may be declared dead. The other way round, silence is
//! counted anew from the end of every fault and from every election that was noticed, because an election starts
//! all timers again; while a fault lasts, nobody need be declared dead.

use std::collections::BTreeMap;

use super::{Checked, HeartbeatRule, Rules, Violation};
use crate::history::{
    Call, CoordinatedTaskState, History, Incarnation, Job, Micros, Operation, Refusal, Reply, TaskId,
};

const CHECKER: &str = "heartbeat";

/// What is known of one task.
#[derive(Default)]
struct Task<'a> {
    /// Registrations and beats that were acknowledged.
    signs: Vec<&'a Operation>,
    /// Whatever may have kept it alive, answered or not.
    calls: Vec<(&'a Operation, Incarnation)>,
    /// It was said to be dead.
    dead: Vec<&'a Operation>,
    /// It was said to be connected.
    connected: Vec<&'a Operation>,
    /// It left, or may have.
    left: Vec<&'a Operation>,
}

/// Judges every task by [`Rules::heartbeat`]; looks at nothing without it.
#[must_use]
pub fn check(history: &History, rules: &Rules) -> Checked {
    let Some(rule) = rules.heartbeat else { return Checked::told(CHECKER, 0, Vec::new()) };
    let mut tasks: BTreeMap<(&Job, TaskId), Task<'_>> = BTreeMap::new();
    let mut examined = 0;
    for operation in &history.operations {
        match (&operation.call, operation.reply()) {
            (
                Call::Register { job, task, incarnation } | Call::Heartbeat { job, task, incarnation },
                reply,
            ) => {
                examined += 1;
                let entry = tasks.entry((job, *task)).or_default();
                match reply {
                    Some(Reply::Done) => entry.signs.push(operation),
                    Some(Reply::Refused(Refusal::Dead)) => entry.dead.push(operation),
                    _ => {}
                }
                if operation.outcome.may_have_effect() {
                    entry.calls.push((operation, *incarnation));
                }
            }
            (Call::Leave { job, task, .. }, _) if operation.outcome.may_have_effect() => {
                tasks.entry((job, *task)).or_default().left.push(operation);
            }
            (Call::ReadTasks { job }, Some(Reply::Tasks(seen))) => {
                examined += 1;
                for seen in seen {
                    let entry = tasks.entry((job, seen.task)).or_default();
                    match seen.state {
                        CoordinatedTaskState::Dead => entry.dead.push(operation),
                        CoordinatedTaskState::Connected => entry.connected.push(operation),
                        CoordinatedTaskState::Disconnected | CoordinatedTaskState::Error => {}
                    }
                }
            }
            _ => {}
        }
    }
    let mut violations = Vec::new();
    for ((job, id), task) in &tasks {
        let subject = format!("task {id} of {job}");
        // A job's tasks are connected together, when the last of them has come.
        let of_job = tasks.iter().filter(|((other, _), _)| other == job);
        let all_came = of_job.filter_map(|(_, task)| task.first_registration()).max().unwrap_or_default();
        violations.extend(task.killed_while_beating(&subject, rule, all_came));
        violations.extend(task.alive_while_silent(&subject, rule, history));
    }
    Checked::told(CHECKER, examined, violations)
}

impl Task<'_> {
    fn first_registration(&self) -> Option<Micros> {
        let registrations = self.calls.iter().filter(|(call, _)| is_registration(call));
        registrations.map(|(call, _)| call.invoked).min()
    }

    fn killed_while_beating(
        &self,
        subject: &str,
        rule: HeartbeatRule,
        all_came: Micros,
    ) -> Option<Violation> {
        let death = self.dead.iter().copied().min_by_key(|dead| dead.completed)?;
        let mut signs: Vec<&Operation> =
            self.signs.iter().copied().filter(|sign| sign.invoked < death.completed).collect();
        signs.sort_by_key(|sign| sign.invoked);
        // Several lives may have been declared dead one after the other; only the first is judged.
        let first = signs.first()?;
        let heard = |sign: &Operation| {
            let waited = is_registration(sign) && all_came < sign.completed;
            if waited { all_came.max(sign.invoked) } else { sign.invoked }
        };
        let mut last_heard = heard(first);
        for sign in &signs[1..] {
            // As late as it can have arrived, but not later than the death.
            if sign.completed.min(death.completed).since(last_heard) >= rule.timeout {
                return None;
            }
            last_heard = last_heard.max(heard(sign));
        }
        if death.completed.since(last_heard) >= rule.timeout {
            return None;
        }
        let last = signs.last().expect("there is a first one");
        let text = format!(
            "operation {} was told that the task is dead, though it was never silent for {:.3} s: the last \
            of {} signs of life was acknowledged to operation {}",
            death.id,
            rule.timeout.as_secs_f64(),
            signs.len(),
            last.id
        );
        Some(Violation::new("beating-task-declared-dead", subject, text, &[first, last, death]))
    }

    fn alive_while_silent(&self, subject: &str, rule: HeartbeatRule, history: &History) -> Option<Violation> {
        if !self.left.is_empty() {
            return None;
        }
        self.connected.iter().find_map(|look| {
            let before = self.calls.iter().filter(|(call, _)| call.invoked < look.completed);
            let (last, _) = before.max_by_key(|(call, _)| call.completed)?;
            // Whatever was invoked before the look ended and is not known may have arrived at any time until
            // it was given up, and not later than the network keeps it, which the bound must cover.
            let disturbed = history.faults.iter().filter(|fault| fault.began < look.completed);
            let healed = disturbed.map(|fault| fault.ended.unwrap_or(Micros(u64::MAX)));
            let elections = history.timers_restarted.iter().copied().filter(|at| *at < look.completed);
            let quiet = healed.chain(elections).max();
            let silent_from = last.completed.max(quiet.unwrap_or_default());
            let due = silent_from.plus(rule.timeout).plus(rule.bound);
            (look.invoked > due).then(|| {
                let text = format!(
                    "operation {} still saw the task connected, though nothing was heard of it since \
                    operation {} and it was to be declared dead by {:.3} s",
                    look.id,
                    last.id,
                    due.as_secs_f64()
                );
                Violation::new("silent-task-alive", subject, text, &[last, look])
            })
        })
    }
}

fn is_registration(call: &Operation) -> bool {
    matches!(call.call, Call::Register { .. })
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt as _, SeedableRng as _};

    use super::*;
    use crate::check::testing::Tally;
    use crate::history::{ClientId, Fault, OperationId, Outcome, TaskSeen};

    const RULE: HeartbeatRule =
        HeartbeatRule { timeout: Micros::from_millis(1_000), bound: Micros::from_millis(300) };

    /// Tasks that beat every 300 ms; some fall silent and are declared dead; somebody looks at all of them.
    fn model(seed: u64) -> History {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut operations = Vec::new();
        let end = 20_000_000_u64;
        let mut deaths = Vec::new();
        for task in 0..4 {
            let silent_at = random.random_bool(0.5).then(|| random.random_range(2_000_000..15_000_000));
            let mut now = random.random_range(0..100_000_u64);
            let mut heard = now;
            let (job, incarnation) = (Job::from("job"), Incarnation(7));
            let mut call = Call::Register { job: job.clone(), task: TaskId(task), incarnation };
            while now < silent_at.unwrap_or(end) {
                let arrives = now + random.random_range(1_000..40_000);
                let completed = arrives + random.random_range(1_000..40_000);
                let lost = random.random_bool(0.1) && matches!(call, Call::Heartbeat { .. });
                let outcome =
                    if lost { Outcome::Unknown("no answer".into()) } else { Outcome::Ok(Reply::Done) };
                if !lost || random.random_bool(0.5) {
                    heard = arrives;
                }
                operations.push(operation(task, (now, completed), call, outcome));
                call = Call::Heartbeat { job: job.clone(), task: TaskId(task), incarnation };
                now = completed + 150_000;
            }
            deaths.push(silent_at.map(|_| heard + RULE.timeout.0 + random.random_range(0..RULE.bound.0 / 2)));
        }
        let mut now = 500_000;
        while now < end {
            let at = now + 500;
            let seen = deaths.iter().zip(0..).map(|(death, task)| TaskSeen {
                task: TaskId(task),
                state: if death.is_some_and(|death| death <= at) {
                    CoordinatedTaskState::Dead
                } else {
                    CoordinatedTaskState::Connected
                },
                incarnation: None,
            });
            let outcome = Outcome::Ok(Reply::Tasks(seen.collect()));
            operations.push(operation(
                9,
                (now, now + 1_000),
                Call::ReadTasks { job: Job::from("job") },
                outcome,
            ));
            now += random.random_range(50_000..400_000);
        }
        operations.sort_by_key(|operation| operation.invoked);
        for (id, operation) in (0..).zip(&mut operations) {
            operation.id = OperationId(id);
        }
        History { operations, ..History::default() }
    }

    fn operation(client: i32, times: (u64, u64), call: Call, outcome: Outcome) -> Operation {
        Operation {
            id: OperationId(0),
            client: ClientId(u32::try_from(client).unwrap()),
            node: None,
            call,
            invoked: Micros(times.0),
            completed: Micros(times.1),
            attempts: 1,
            outcome,
        }
    }

    fn judge(history: &History) -> Checked {
        check(history, &Rules { heartbeat: Some(RULE), ..Rules::default() })
    }

    fn seen_tasks(operation: &mut Operation) -> Option<&mut Vec<TaskSeen>> {
        match &mut operation.outcome {
            Outcome::Ok(Reply::Tasks(seen)) => Some(seen),
            _ => None,
        }
    }

    #[test]
    fn valid_beats_pass() {
        for seed in 0..200 {
            let checked = judge(&model(seed));
            assert!(checked.held(), "seed {seed}: {checked:?}");
            assert!(checked.examined > 100);
        }
    }

    #[test]
    fn a_beating_task_that_is_declared_dead_is_seen() {
        Tally::all_caught(
            "beating task declared dead",
            100,
            model,
            |random, history| {
                // Without losses among its beats, so that nobody may think that it was silent.
                let task = random.random_range(0..4);
                for operation in &mut history.operations {
                    if matches!(operation.call, Call::Heartbeat { task: other, .. } if other.0 == task) {
                        operation.outcome = Outcome::Ok(Reply::Done);
                    }
                }
                let looks = history.operations.iter_mut().filter_map(seen_tasks);
                let mut alive: Vec<_> = looks
                    .filter_map(|seen| seen.iter_mut().find(|seen| seen.task.0 == task))
                    .filter(|seen| seen.state == CoordinatedTaskState::Connected)
                    .collect();
                let half = alive.len() / 2;
                for seen in alive.iter_mut().skip(half) {
                    seen.state = CoordinatedTaskState::Dead;
                }
                !alive.is_empty()
            },
            judge,
        );
    }

    /// A task that is silent is held for connected for ever.
    fn forget_death(history: &mut History) -> bool {
        let mut changed = false;
        for seen in history.operations.iter_mut().filter_map(seen_tasks).flatten() {
            changed |= seen.state == CoordinatedTaskState::Dead;
            seen.state = CoordinatedTaskState::Connected;
        }
        changed
    }

    #[test]
    fn a_silent_task_that_lives_on_is_seen() {
        Tally::all_caught("silent task alive", 100, model, |_, history| forget_death(history), judge);
    }

    #[test]
    fn while_a_fault_lasts_nobody_need_be_declared_dead() {
        let mut history = (0..).map(model).find(|history| forget_death(&mut history.clone())).unwrap();
        forget_death(&mut history);
        assert!(!judge(&history).held());
        let kind = "partition".to_owned();
        history.faults.push(Fault {
            kind,
            target: "node 1".into(),
            began: Micros(0),
            ended: None,
            planned: None,
        });
        assert!(judge(&history).held());
    }

    #[test]
    fn an_election_gives_the_full_time_again_and_no_more() {
        let mut history = (0..).map(model).find(|history| forget_death(&mut history.clone())).unwrap();
        forget_death(&mut history);
        history.timers_restarted = vec![Micros(0)];
        assert!(!judge(&history).held());
        history.timers_restarted = (0..25).map(|second| Micros::from_millis(second * 1_000)).collect();
        assert!(judge(&history).held());
    }

    fn beat(times: (u64, u64), outcome: Outcome) -> Operation {
        let call = Call::Heartbeat { job: Job::from("job"), task: TaskId(1), incarnation: Incarnation(7) };
        operation(1, times, call, outcome)
    }

    fn register(task: i32, times: (u64, u64)) -> Operation {
        let call = Call::Register { job: Job::from("job"), task: TaskId(task), incarnation: Incarnation(7) };
        operation(task, times, call, Outcome::Ok(Reply::Done))
    }

    #[test]
    fn a_refusal_is_a_declaration_too() {
        let dead = Outcome::Ok(Reply::Refused(Refusal::Dead));
        for (after_us, held) in [(900_000, false), (1_100_000, true)] {
            let operations = vec![
                register(1, (0, 10_000)),
                beat((500_000, 510_000), Outcome::Ok(Reply::Done)),
                beat((500_000 + after_us - 10, 500_000 + after_us), dead.clone()),
            ];
            let checked = judge(&History { operations, ..History::default() });
            assert_eq!(checked.held(), held, "{after_us}: {checked:?}");
        }
    }

    #[test]
    fn silence_begins_when_the_last_task_of_the_job_has_come() {
        let mut operations = vec![register(1, (0, 5_010_000)), register(2, (5_000_000, 5_010_000))];
        operations.push(beat((5_300_000, 5_310_000), Outcome::Ok(Reply::Done)));
        operations.push(beat((5_500_000, 5_510_000), Outcome::Ok(Reply::Refused(Refusal::Dead))));
        let checked = judge(&History { operations: operations.clone(), ..History::default() });
        assert_eq!(checked.violations().len(), 1, "{checked:?}");
        // A registration that nobody else waited for may have counted at once.
        operations.remove(1);
        assert!(judge(&History { operations, ..History::default() }).held());
    }
}
