//! An old life of a task is never acknowledged after a newer one.
//!
//! A life is newer than another one if its registration was sent after the other's had been acknowledged.
//! Which of two registrations came first that overlapped is not known, and nothing is judged between them;
//! nor is anything between a life and one that registered once more after it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checked, Rules, Violation};
use crate::history::{
    Call, CoordinatedTaskState, History, Incarnation, Job, Micros, Operation, Refusal, Reply, TaskId,
};

const CHECKER: &str = "incarnation";

/// One life of a task.
#[derive(Default)]
struct Life<'a> {
    /// Registrations that took effect or may have.
    registrations: Vec<&'a Operation>,
    /// Whatever proves that the cluster took this life for the current one.
    signs: Vec<&'a Operation>,
}

type Lives<'a> = BTreeMap<(&'a Job, TaskId), BTreeMap<Incarnation, Life<'a>>>;

/// Judges the lives of every task.
#[must_use]
pub fn check(history: &History, rules: &Rules) -> Checked {
    let (lives, fenced, examined) = collect(history, rules);
    let mut violations = Vec::new();
    for ((job, task), lives) in &lives {
        let subject = format!("task {task} of {job}");
        violations.extend(phantoms(&subject, lives));
        for (old, old_life) in lives {
            let newer: Vec<(Micros, &Incarnation, &Operation)> = lives
                .iter()
                .filter(|(new, new_life)| new != &old && is_newer(new_life, old_life))
                .filter_map(|(new, life)| established(life).map(|sign| (sign.completed, new, sign)))
                .collect();
            let Some((since, new, proof)) = newer.iter().min_by_key(|(since, _, _)| *since) else { continue };
            let late = |sign: &&&Operation| sign.invoked > *since && !excused(sign, history, rules);
            if let Some(late) = old_life.signs.iter().find(late) {
                let text = format!(
                    "operation {} was answered as if life {old} were current, though operation {} had shown \
                    that life {new} had taken its place",
                    late.id, proof.id
                );
                violations.push(Violation::new("old-life-acknowledged", &subject, text, &[proof, late]));
            }
        }
        for (incarnation, operation) in fenced.get(&(*job, *task)).into_iter().flatten() {
            violations.extend(wrongly_fenced(&subject, lives, *incarnation, operation));
        }
    }
    Checked::told(CHECKER, examined, violations)
}

type Fenced<'a> = BTreeMap<(&'a Job, TaskId), Vec<(Incarnation, &'a Operation)>>;

fn collect<'a>(history: &'a History, rules: &Rules) -> (Lives<'a>, Fenced<'a>, usize) {
    let (mut lives, mut fenced) = (Lives::new(), Fenced::new());
    let mut examined = 0;
    for operation in &history.operations {
        match (&operation.call, operation.reply()) {
            (
                Call::Register { job, task, incarnation } | Call::Heartbeat { job, task, incarnation },
                Some(Reply::Refused(Refusal::Fenced)),
            ) => {
                examined += 1;
                fenced.entry((job, *task)).or_default().push((*incarnation, operation));
            }
            (Call::Register { job, task, incarnation }, reply) if operation.outcome.may_have_effect() => {
                examined += 1;
                let life = lives.entry((job, *task)).or_default().entry(*incarnation).or_default();
                life.registrations.push(operation);
                if reply.is_some() {
                    life.signs.push(operation);
                }
            }
            (Call::Heartbeat { job, task, incarnation }, Some(Reply::Done)) if !rules.old_beats_tolerated => {
                examined += 1;
                let life = lives.entry((job, *task)).or_default().entry(*incarnation).or_default();
                life.signs.push(operation);
            }
            (Call::ReadTasks { job }, Some(Reply::Tasks(tasks))) => {
                examined += 1;
                for seen in tasks.iter().filter(|seen| seen.state == CoordinatedTaskState::Connected) {
                    if let Some(incarnation) = seen.incarnation {
                        let life = lives.entry((job, seen.task)).or_default().entry(incarnation).or_default();
                        life.signs.push(operation);
                    }
                }
            }
            _ => {}
        }
    }
    (lives, fenced, examined)
}

/// The first proof that the cluster took a life for the current one.
fn established<'a>(life: &Life<'a>) -> Option<&'a Operation> {
    life.signs.iter().copied().min_by_key(|sign| sign.completed)
}

fn is_newer(new: &Life<'_>, old: &Life<'_>) -> bool {
    let began = new.registrations.iter().map(|call| call.invoked).min();
    let acknowledged = old.registrations.iter().filter(|call| call.acknowledged());
    let known = acknowledged.map(|call| call.completed).min();
    let last = old.registrations.iter().map(|call| call.invoked).max();
    // An older life that registers again becomes the newer one, and nobody can say when.
    known.is_some() && began > known && last < began
}

/// Whether a leader that had been stopped or cut off may have answered, which knew of no newer life.
fn excused(sign: &Operation, history: &History, rules: &Rules) -> bool {
    let Some(aftermath) = rules.deposed_leader else { return false };
    matches!(sign.call, Call::Heartbeat { .. })
        && history.faults.iter().any(|fault| {
            let over = fault.ended.map_or(Micros(u64::MAX), |ended| ended.plus(aftermath));
            fault.began < sign.completed && sign.invoked < over
        })
}

/// Lives that nobody began.
fn phantoms(subject: &str, lives: &BTreeMap<Incarnation, Life<'_>>) -> Option<Violation> {
    lives.iter().find_map(|(incarnation, life)| {
        let began = life.registrations.iter().map(|call| call.invoked).min();
        let sign = life.signs.iter().find(|sign| began.is_none_or(|began| began >= sign.completed))?;
        let text = format!(
            "operation {} was answered as if life {incarnation} were current, which nobody had registered",
            sign.id
        );
        Some(Violation::new("phantom-life", subject, text, &[sign]))
    })
}

/// Who is told that another life is current must have one.
fn wrongly_fenced(
    subject: &str,
    lives: &BTreeMap<Incarnation, Life<'_>>,
    incarnation: Incarnation,
    operation: &Operation,
) -> Option<Violation> {
    let others: BTreeSet<Incarnation> = lives
        .iter()
        .filter(|(_, life)| life.registrations.iter().any(|call| call.invoked < operation.completed))
        .map(|(other, _)| *other)
        .filter(|other| *other != incarnation)
        .collect();
    others.is_empty().then(|| {
        let text = format!(
            "operation {} of life {incarnation} was told that another life is current, and there was no \
            other",
            operation.id
        );
        Violation::new("wrongly-fenced", subject, text, &[operation])
    })
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;
    use rand::rngs::SmallRng;

    use super::*;
    use crate::check::testing::{Executor, Tally};
    use crate::history::{ClientId, Fault, Header, Outcome, Recorder, TaskSeen};

    /// Tasks that begin new lives now and then; old ones go on beating.
    fn model(seed: u64) -> History {
        let mut current: BTreeMap<i32, u64> = BTreeMap::new();
        let mut begun: BTreeMap<i32, Vec<u64>> = BTreeMap::new();
        let mut fresh = 0;
        Executor { unknown_percent: 4, ..Executor::new(seed) }.run(|random, slot| {
            let number = random.random_range(0..3);
            let (job, task) = (Job::from("job"), TaskId(number));
            let lives = begun.entry(number).or_default();
            match random.random_range(0..10) {
                0 => {
                    fresh += 1;
                    lives.push(fresh);
                    if slot.effective {
                        current.insert(number, fresh);
                    }
                    (Call::Register { job, task, incarnation: Incarnation(fresh) }, Outcome::Ok(Reply::Done))
                }
                1..=6 if !lives.is_empty() => {
                    let life = lives[lives.len() - 1 - random.random_range(0..lives.len().min(3))];
                    let answer = if current.get(&number) == Some(&life) {
                        Reply::Done
                    } else if current.contains_key(&number) {
                        Reply::Refused(Refusal::Fenced)
                    } else {
                        return (Call::ReadTasks { job }, Outcome::Ok(Reply::Tasks(Vec::new())));
                    };
                    (Call::Heartbeat { job, task, incarnation: Incarnation(life) }, Outcome::Ok(answer))
                }
                _ => {
                    let seen = current.iter().map(|(task, life)| TaskSeen {
                        task: TaskId(*task),
                        state: CoordinatedTaskState::Connected,
                        incarnation: Some(Incarnation(*life)),
                    });
                    (Call::ReadTasks { job }, Outcome::Ok(Reply::Tasks(seen.collect())))
                }
            }
        })
    }

    fn judge(history: &History) -> Checked {
        check(history, &Rules::default())
    }

    fn registered(operation: &Operation) -> Option<(TaskId, Incarnation)> {
        match operation.call {
            Call::Register { task, incarnation, .. } if operation.acknowledged() => Some((task, incarnation)),
            _ => None,
        }
    }

    /// An old life of a task and a moment from which a newer one is established.
    fn outlived(random: &mut SmallRng, history: &History) -> Option<(TaskId, Incarnation, Micros)> {
        let mut found = Vec::new();
        for new in &history.operations {
            let Some((task, _)) = registered(new) else { continue };
            for old in &history.operations {
                let Some((same, incarnation)) = registered(old) else { continue };
                if same == task && old.completed < new.invoked {
                    found.push((task, incarnation, new.completed));
                }
            }
        }
        (!found.is_empty()).then(|| found[random.random_range(0..found.len())])
    }

    #[test]
    fn valid_lives_pass() {
        for seed in 0..300 {
            let checked = judge(&model(seed));
            assert!(checked.held(), "seed {seed}: {checked:?}");
        }
    }

    #[test]
    fn a_beat_of_an_old_life_that_is_acknowledged_is_seen() {
        let plant = |random: &mut SmallRng, history: &mut History| {
            let Some((task, incarnation, since)) = outlived(random, history) else { return false };
            let late = history.operations.iter_mut().find(|operation| {
                operation.invoked > since
                    && matches!(operation.call, Call::Heartbeat { .. } | Call::ReadTasks { .. })
            });
            let Some(operation) = late else { return false };
            operation.call = Call::Heartbeat { job: Job::from("job"), task, incarnation };
            operation.outcome = Outcome::Ok(Reply::Done);
            true
        };
        Tally::all_caught("zombie's beat", 100, model, plant, judge);
        let tolerant = Rules { old_beats_tolerated: true, ..Rules::default() };
        let mut history = model(0);
        assert!(plant(&mut Executor::new(1).random(), &mut history));
        assert!(check(&history, &tolerant).held(), "some jobs answer old lives");
    }

    #[test]
    fn a_beat_that_a_deposed_leader_may_have_answered_is_no_proof() {
        let rules = Rules { deposed_leader: Some(Micros(100)), ..Rules::default() };
        let fault = |began, ended| Fault {
            kind: "pause-leader".into(),
            target: "node 1".into(),
            began: Micros(began),
            ended: Some(Micros(ended)),
            planned: None,
        };
        let task = TaskId(0);
        let call = |life, beats| {
            let (job, incarnation) = (Job::from("job"), Incarnation(life));
            if beats {
                Call::Heartbeat { job, task, incarnation }
            } else {
                Call::Register { job, task, incarnation }
            }
        };
        let recorder = Recorder::new(Header::default());
        for (at, life, beats) in [(0, 1, false), (1_000, 2, false), (2_000, 1, true)] {
            let pending = recorder.invoke(Micros(at), ClientId(0), call(life, beats));
            pending.complete(Micros(at + 10), Outcome::Ok(Reply::Done));
        }
        let history = recorder.history(Micros(3_000));
        for (faults, held) in [
            (vec![], false),
            (vec![fault(900, 1_899)], false),
            (vec![fault(900, 1_950)], true),
            (vec![fault(2_005, 2_500)], true),
            (vec![fault(2_020, 2_500)], false),
        ] {
            let history = History { faults, ..history.clone() };
            assert_eq!(check(&history, &rules).held(), held, "{:?}", history.faults);
            assert!(!check(&history, &Rules::default()).held());
        }
    }

    #[test]
    fn an_old_life_that_is_seen_again_is_seen() {
        Tally::all_caught(
            "resurrected life",
            100,
            model,
            |random, history| {
                let Some((task, incarnation, since)) = outlived(random, history) else { return false };
                let late = history.operations.iter_mut().filter(|operation| operation.invoked > since);
                for operation in late {
                    if let Outcome::Ok(Reply::Tasks(tasks)) = &mut operation.outcome
                        && let Some(seen) = tasks.iter_mut().find(|seen| seen.task == task)
                    {
                        seen.incarnation = Some(incarnation);
                        return true;
                    }
                }
                false
            },
            judge,
        );
    }

    #[test]
    fn a_life_that_nobody_began_is_seen() {
        Tally::all_caught(
            "phantom life",
            100,
            model,
            |random, history| {
                let reads =
                    history.operations.iter_mut().filter_map(|operation| match &mut operation.outcome {
                        Outcome::Ok(Reply::Tasks(tasks)) if !tasks.is_empty() => Some(tasks),
                        _ => None,
                    });
                let mut reads: Vec<_> = reads.collect();
                let place = random.random_range(0..reads.len());
                reads[place][0].incarnation = Some(Incarnation(1 << 40));
                true
            },
            judge,
        );
    }

    #[test]
    fn who_is_fenced_by_nobody_is_seen() {
        Tally::all_caught(
            "fenced by nobody",
            100,
            model,
            |_, history| {
                let first = history.operations.iter().position(|operation| {
                    matches!(operation.call, Call::Heartbeat { .. }) && operation.acknowledged()
                });
                let Some(first) = first else { return false };
                let Call::Heartbeat { task, incarnation, .. } = history.operations[first].call else {
                    return false;
                };
                // Nothing is left of the task's other lives.
                history.operations.retain(|operation| match operation.call {
                    Call::Register { task: same, incarnation: other, .. }
                    | Call::Heartbeat { task: same, incarnation: other, .. } => {
                        same != task || other == incarnation
                    }
                    _ => false,
                });
                for operation in &mut history.operations {
                    if matches!(operation.call, Call::Heartbeat { task: same, .. } if same == task) {
                        operation.outcome = Outcome::Ok(Reply::Refused(Refusal::Fenced));
                        return true;
                    }
                }
                false
            },
            judge,
        );
    }
}
