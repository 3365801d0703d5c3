//! Every mistake that is planted in a valid history is seen.

use std::collections::BTreeSet;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::{TIMEOUT, judge, judge_by_looks, model};
use crate::check::testing::Tally;
use crate::history::{
    BarrierSeen, Call, Fault, Generation, History, Micros, Missing, Operation, OperationId, Outcome, Reply,
    TaskId,
};

const SEEDS: u64 = 100;

/// Picks one of the operations that fit.
fn pick(random: &mut SmallRng, history: &History, fits: impl Fn(&Operation) -> bool) -> Option<usize> {
    let places: Vec<usize> =
        (0..history.operations.len()).filter(|place| fits(&history.operations[*place])).collect();
    (!places.is_empty()).then(|| places[random.random_range(0..places.len())])
}

fn generation(operation: &Operation) -> Option<Generation> {
    match &operation.call {
        Call::Arrive { generation, .. } => Some(*generation),
        _ => None,
    }
}

fn passed(operation: &Operation) -> bool {
    matches!(operation.reply(), Some(Reply::Passed))
}

fn timed_out(operation: &Operation) -> bool {
    matches!(operation.reply(), Some(Reply::BarrierFailed { missing: Some(_), .. }))
}

/// Changes the list that everybody was told of the instance of one who was told some.
fn edit_missing(
    random: &mut SmallRng,
    history: &mut History,
    change: impl Fn(&mut Missing, &BTreeSet<TaskId>, &[TaskId]) -> bool,
) -> bool {
    let Some(place) = pick(random, history, timed_out) else { return false };
    let chosen = generation(&history.operations[place]);
    let Call::Arrive { members, .. } = history.operations[place].call.clone() else { return false };
    // Who waited until the end had surely come.
    let came: BTreeSet<TaskId> = history
        .operations
        .iter()
        .filter(|operation| generation(operation) == chosen && timed_out(operation))
        .filter(|operation| operation.completed.since(operation.invoked) > Micros(700_000))
        .filter_map(|operation| match operation.call {
            Call::Arrive { task, .. } => Some(task),
            _ => None,
        })
        .collect();
    let mut changed = false;
    for operation in &mut history.operations {
        if generation(operation) != chosen {
            continue;
        }
        if let Outcome::Ok(Reply::BarrierFailed { missing: Some(missing), .. }) = &mut operation.outcome {
            changed |= change(missing, &came, &members);
        }
    }
    changed
}

#[test]
fn an_early_release_is_seen() {
    Tally::all_caught(
        "early release",
        SEEDS,
        model,
        |random, history| {
            // Who passed last had called; now it calls only after another one was let through.
            let Some(first) = pick(random, history, passed) else { return false };
            let (chosen, completed) =
                (generation(&history.operations[first]), history.operations[first].completed);
            let Some(other) = history.operations.iter_mut().rfind(|operation| {
                generation(operation) == chosen && operation.invoked.0 < completed.0 && operation.client.0 > 0
            }) else {
                return false;
            };
            if other.id.0 == first as u64 {
                return false;
            }
            other.invoked = completed.plus(Micros(10));
            other.completed = completed.plus(Micros(1_000));
            true
        },
        judge,
    );
}

#[test]
fn a_release_without_one_member_is_seen() {
    Tally::all_caught(
        "dropped member",
        SEEDS,
        model,
        |random, history| {
            let Some(place) = pick(random, history, passed) else { return false };
            let chosen = generation(&history.operations[place]);
            let Some(other) = pick(random, history, |operation| {
                generation(operation) == chosen && operation.id.0 != place as u64
            }) else {
                return false;
            };
            // It came to the next instance instead.
            history.operations.remove(other);
            true
        },
        judge,
    );
}

#[test]
fn a_split_verdict_is_seen() {
    Tally::all_caught(
        "split verdict",
        SEEDS,
        model,
        |random, history| {
            let Some(place) = pick(random, history, passed) else { return false };
            let chosen = generation(&history.operations[place]);
            let others = |operation: &Operation| {
                generation(operation) == chosen && passed(operation) && operation.id.0 != place as u64
            };
            let Some(_) = pick(random, history, others) else { return false };
            history.operations[place].outcome =
                Outcome::Ok(Reply::BarrierFailed { reason: "a member was lost".into(), missing: None });
            true
        },
        judge,
    );
}

#[test]
fn a_list_that_names_who_was_there_is_seen() {
    Tally::all_caught(
        "one too many on the list",
        SEEDS,
        model,
        |random, history| {
            edit_missing(random, history, |missing, came, _| {
                let Some(task) = came.first() else { return false };
                missing.count += 1;
                missing.named.insert(0, *task);
                true
            })
        },
        judge,
    );
}

#[test]
fn a_dropped_arrival_is_seen_by_who_looked_on() {
    let mut caught = 0;
    for seed in 0..SEEDS {
        let mut history = model(seed);
        let planted = edit_missing(&mut SmallRng::seed_from_u64(seed), &mut history, |missing, came, _| {
            let Some(task) = came.first() else { return false };
            missing.count += 1;
            missing.named.insert(0, *task);
            true
        });
        caught += u64::from(planted && !judge_by_looks(&history).violations().is_empty());
    }
    eprintln!("dropped arrival, by looks alone: caught {caught} of {SEEDS}");
    assert!(caught > SEEDS / 2, "{caught}");
}

#[test]
fn a_list_that_omits_who_never_called_is_seen() {
    Tally::all_caught(
        "one too few on the list",
        SEEDS,
        model,
        |random, history| {
            let never = |operation: &Operation| {
                timed_out(operation) && {
                    let chosen = generation(operation);
                    let callers =
                        history.operations.iter().filter(|other| generation(other) == chosen).count();
                    matches!(&operation.call, Call::Arrive { members, .. } if members.len() > callers)
                }
            };
            let Some(place) = pick(random, history, never) else { return false };
            let chosen = generation(&history.operations[place]);
            for operation in &mut history.operations {
                if generation(operation) == chosen
                    && let Outcome::Ok(Reply::BarrierFailed { missing: Some(missing), .. }) =
                        &mut operation.outcome
                {
                    *missing = Missing { count: 0, named: Vec::new() };
                }
            }
            true
        },
        judge,
    );
}

#[test]
fn strangers_and_different_lists_are_seen() {
    Tally::all_caught(
        "stranger on the list",
        SEEDS,
        model,
        |random, history| {
            edit_missing(random, history, |missing, _, _| {
                missing.named.push(TaskId(77));
                missing.count += 1;
                true
            })
        },
        judge,
    );
    Tally::all_caught(
        "different lists",
        SEEDS,
        model,
        |random, history| {
            let Some(place) = pick(random, history, timed_out) else { return false };
            let chosen = generation(&history.operations[place]);
            let others = |operation: &Operation| generation(operation) == chosen && timed_out(operation);
            if history.operations.iter().filter(|operation| others(operation)).count() < 2 {
                return false;
            }
            let Outcome::Ok(Reply::BarrierFailed { missing: Some(missing), .. }) =
                &mut history.operations[place].outcome
            else {
                return false;
            };
            missing.count += 1;
            true
        },
        judge,
    );
}

#[test]
fn a_time_out_before_its_time_is_seen() {
    Tally::all_caught(
        "early time-out",
        SEEDS,
        model,
        |random, history| {
            let Some(place) = pick(random, history, timed_out) else { return false };
            let chosen = generation(&history.operations[place]);
            let first = history.operations.iter().filter(|operation| generation(operation) == chosen);
            let first = first.map(|operation| operation.invoked).min().unwrap();
            let early = first.plus(Micros(TIMEOUT.0 / 2));
            if history.operations[place].invoked >= early {
                return false;
            }
            history.operations[place].completed = early;
            true
        },
        judge,
    );
}

#[test]
fn phantom_and_forgotten_arrivals_are_seen() {
    let seen = |operation: &mut Operation, change: &dyn Fn(&mut BarrierSeen)| {
        if let Outcome::Ok(Reply::BarrierSeen(Some(seen))) = &mut operation.outcome {
            change(seen);
        }
    };
    Tally::all_caught(
        "phantom arrival",
        SEEDS,
        model,
        |random, history| {
            // Somebody is missing who calls only later.
            let early = |operation: &Operation| {
                let Some(Reply::BarrierSeen(Some(seen))) = operation.reply() else { return false };
                let called = |task: &TaskId| {
                    history.operations.iter().any(|other| match &other.call {
                        Call::Arrive { task: caller, generation, .. } => {
                            caller == task
                                && *generation == seen.generation
                                && other.invoked <= operation.completed
                        }
                        _ => false,
                    })
                };
                seen.missing.iter().any(|task| !called(task))
            };
            let Some(place) = pick(random, history, early) else { return false };
            seen(&mut history.operations[place], &|seen| seen.arrived.append(&mut seen.missing));
            true
        },
        judge,
    );
    Tally::all_caught(
        "forgotten arrival",
        SEEDS,
        model,
        |random, history| {
            let somebody = |operation: &Operation| match operation.reply() {
                Some(Reply::BarrierSeen(Some(seen))) => !seen.arrived.is_empty(),
                _ => false,
            };
            let Some(place) = pick(random, history, somebody) else { return false };
            let mut again = history.operations[place].clone();
            again.invoked = again.completed.plus(Micros(1));
            again.completed = again.invoked.plus(Micros(1));
            again.id = OperationId(1 << 20);
            seen(&mut again, &|seen| seen.missing.append(&mut seen.arrived));
            history.operations.push(again);
            true
        },
        judge,
    );
}

#[test]
fn under_a_fault_an_arrival_may_take_its_time() {
    let mut excused = 0;
    for seed in 0..SEEDS {
        let mut history = model(seed);
        history.operations.retain(|operation| !matches!(operation.call, Call::ReadBarrier { .. }));
        let planted =
            edit_missing(&mut SmallRng::seed_from_u64(seed), &mut history, |missing, came, members| {
                let Some(task) = came.first().filter(|_| missing.count as usize + 1 < members.len()) else {
                    return false;
                };
                missing.count += 1;
                missing.named.insert(0, *task);
                true
            });
        if !planted {
            continue;
        }
        assert!(!judge(&history).held(), "seed {seed}");
        let kind = "kill-leader".to_owned();
        history.faults.push(Fault {
            kind,
            target: "node 1".into(),
            began: Micros(0),
            ended: None,
            planned: None,
        });
        assert!(judge(&history).held(), "seed {seed}: {:?}", judge(&history));
        excused += 1;
    }
    assert!(excused > 10, "{excused}");
}
