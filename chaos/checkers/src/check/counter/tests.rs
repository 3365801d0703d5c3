//! Valid counters pass, and every planted mistake is seen.

use std::collections::HashMap;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;
use crate::check::Conclusion;
use crate::check::testing::{Executor, Tally, small};
use crate::history::{OperationId, Outcome, Sequence, SessionId, Stamp};

const SEEDS: u64 = 100;

/// Counters that only rise; every client has a session, and repeats some unknown increments with the same
/// stamp.
fn model(seed: u64) -> History {
    generate(Executor::new(seed), false)
}

/// Nothing is unknown, so that the bounds are as narrow as they can be.
fn calm(seed: u64) -> History {
    generate(Executor { unknown_percent: 0, ..Executor::new(seed) }, false)
}

/// At the end every counter is read when nobody else calls any more.
fn generate(executor: Executor, falls: bool) -> History {
    let seed = executor.seed;
    let keys = 1 + seed % 3;
    let mut counters: BTreeMap<u64, i64> = BTreeMap::new();
    let mut sequence = 0;
    let mut replies: HashMap<Stamp, i64> = HashMap::new();
    let mut sent: HashMap<u32, Vec<(Stamp, u64, i64)>> = HashMap::new();
    let mut history = executor.run(|random, slot| {
        let number = random.random_range(0..keys);
        let counter = |number: u64| Key::from(format!("c/{number}"));
        let value = *counters.entry(number).or_default();
        if random.random_bool(0.4) {
            return (Call::ReadCounter { counter: counter(number) }, Outcome::Ok(Reply::Count(value)));
        }
        let sent = sent.entry(slot.client.0).or_default();
        let again =
            (!sent.is_empty() && random.random_bool(0.2)).then(|| sent[random.random_range(0..sent.len())]);
        let (stamp, number, by) = again.unwrap_or_else(|| {
            sequence += 1;
            let stamp = Stamp { session: SessionId(u64::from(slot.client.0)), sequence: Sequence(sequence) };
            let by = random.random_range(1..4);
            (stamp, number, if falls && random.random_bool(0.3) { -by } else { by })
        });
        sent.push((stamp, number, by));
        let call = Call::Increment { counter: counter(number), by, stamp: Some(stamp) };
        let value = counters.entry(number).or_default();
        let told = match replies.get(&stamp) {
            Some(told) => *told,
            None => {
                let told = *value + by;
                if slot.effective {
                    *value = told;
                    replies.insert(stamp, told);
                }
                told
            }
        };
        (call, Outcome::Ok(Reply::Count(told)))
    });
    let mut last = history.end().plus(Micros(40_000));
    for (number, value) in counters {
        let id = history.operations.len() as u64;
        let counter = Key::from(format!("c/{number}"));
        let operation = read(id, (last.0, last.0 + 10), value);
        history.operations.push(Operation { call: Call::ReadCounter { counter }, ..operation });
        last = last.plus(Micros(20));
    }
    history
}

fn judge(history: &History) -> Checked {
    check(history, &Rules::default())
}

fn same_counter(one: &Call, other: &Call) -> bool {
    let key = |call: &Call| match call {
        Call::Increment { counter, .. } | Call::ReadCounter { counter } => Some(counter.clone()),
        _ => None,
    };
    key(one) == key(other)
}

/// Adds to everything that anybody saw of a counter after an acknowledged increment of it.
fn shift(random: &mut SmallRng, history: &mut History, by: impl Fn(i64) -> i64) -> bool {
    let acknowledged: Vec<usize> = (0..history.operations.len())
        .filter(|place| {
            let operation = &history.operations[*place];
            let later = history.operations.iter().any(|other| {
                same_counter(&other.call, &operation.call)
                    && other.invoked > operation.completed
                    && matches!(other.call, Call::ReadCounter { .. })
                    && other.acknowledged()
            });
            later && operation.acknowledged() && matches!(operation.call, Call::Increment { .. })
        })
        .collect();
    if acknowledged.is_empty() {
        return false;
    }
    let chosen = history.operations[acknowledged[random.random_range(0..acknowledged.len())]].clone();
    let Call::Increment { by: step, .. } = chosen.call else { return false };
    for operation in &mut history.operations {
        let later = same_counter(&operation.call, &chosen.call) && operation.invoked > chosen.completed;
        if later && let Outcome::Ok(Reply::Count(value)) = &mut operation.outcome {
            *value += by(step);
        }
    }
    true
}

#[test]
fn valid_counters_pass() {
    for seed in 0..200 {
        for falls in [false, true] {
            let checked = judge(&generate(Executor::new(seed), falls));
            assert!(checked.held(), "seed {seed}: {checked:?}");
        }
    }
}

#[test]
fn an_increment_that_counts_twice_is_seen() {
    Tally::all_caught(
        "double apply",
        SEEDS,
        calm,
        |random, history| shift(random, history, |step| step),
        judge,
    );
}

#[test]
fn an_increment_that_is_lost_is_seen() {
    Tally::all_caught(
        "lost increment",
        SEEDS,
        calm,
        |random, history| shift(random, history, |step| -step),
        judge,
    );
}

#[test]
fn far_too_much_is_seen_whatever_is_unknown() {
    Tally::all_caught(
        "five hundred too many",
        SEEDS,
        model,
        |random, history| shift(random, history, |_| 500),
        judge,
    );
}

#[test]
fn a_stale_read_is_seen() {
    Tally::all_caught(
        "stale read of a counter",
        SEEDS,
        model,
        |random, history| {
            let reads: Vec<(usize, i64)> = (0..history.operations.len())
                .filter_map(|place| {
                    let read = &history.operations[place];
                    let (Call::ReadCounter { .. }, Some(_)) = (&read.call, read.reply()) else { return None };
                    let earlier = history.operations.iter().filter(|other| {
                        same_counter(&other.call, &read.call) && other.completed < read.invoked
                    });
                    let highest = earlier.filter_map(|other| match other.outcome {
                        Outcome::Ok(Reply::Count(value)) => Some(value),
                        _ => None,
                    });
                    highest.max().filter(|value| *value > 0).map(|value| (place, value - 1))
                })
                .collect();
            if reads.is_empty() {
                return false;
            }
            let (place, value) = reads[random.random_range(0..reads.len())];
            history.operations[place].outcome = Outcome::Ok(Reply::Count(value));
            true
        },
        judge,
    );
}

#[test]
fn a_repetition_with_an_answer_of_its_own_is_seen() {
    Tally::all_caught(
        "repetition counted",
        SEEDS,
        model,
        |random, history| {
            let mut first: HashMap<Stamp, usize> = HashMap::new();
            let mut again = Vec::new();
            for (place, operation) in history.operations.iter().enumerate() {
                let Call::Increment { stamp: Some(stamp), .. } = operation.call else { continue };
                if operation.acknowledged() && first.insert(stamp, place).is_some() {
                    again.push(place);
                }
            }
            if again.is_empty() {
                return false;
            }
            let place = again[random.random_range(0..again.len())];
            let Outcome::Ok(Reply::Count(value)) = &mut history.operations[place].outcome else {
                return false;
            };
            *value += 1;
            true
        },
        judge,
    );
}

#[test]
fn two_increments_that_were_told_the_same_are_seen() {
    Tally::all_caught(
        "same value twice",
        SEEDS,
        calm,
        |random, history| {
            let told: Vec<usize> = (0..history.operations.len())
                .filter(|place| {
                    let operation = &history.operations[*place];
                    matches!(operation.call, Call::Increment { .. }) && operation.acknowledged()
                })
                .collect();
            let place = told[random.random_range(0..told.len())];
            let (call, outcome) = {
                let operation = &history.operations[place];
                (operation.call.clone(), operation.outcome.clone())
            };
            let Some(other) = told.into_iter().find(|other| {
                let operation = &history.operations[*other];
                operation.call != call && same_counter(&operation.call, &call)
            }) else {
                return false;
            };
            history.operations[other].outcome = outcome;
            true
        },
        judge,
    );
}

fn increment(id: u64, times: (u64, u64), stamp: Option<Stamp>, attempts: u32, outcome: Outcome) -> Operation {
    Operation {
        id: OperationId(id),
        client: crate::history::ClientId(0),
        node: None,
        call: Call::Increment { counter: Key::from("c"), by: 1, stamp },
        invoked: Micros(times.0),
        completed: Micros(times.1),
        attempts,
        outcome,
    }
}

fn read(id: u64, times: (u64, u64), value: i64) -> Operation {
    let call = Call::ReadCounter { counter: Key::from("c") };
    Operation {
        call,
        outcome: Outcome::Ok(Reply::Count(value)),
        ..increment(id, times, None, 1, Outcome::Ok(Reply::Done))
    }
}

#[test]
fn only_what_has_no_stamp_may_count_as_often_as_it_was_sent() {
    let stamp = Stamp { session: SessionId(1), sequence: Sequence(1) };
    for (stamp, allowed) in [(None, 3), (Some(stamp), 1)] {
        for value in 0..6 {
            let lost = Outcome::Unknown("no answer".into());
            let operations = vec![increment(0, (0, 10), stamp, 3, lost), read(1, (20, 30), value)];
            let checked = judge(&History { operations, ..History::default() });
            assert_eq!(checked.held(), value <= allowed, "{stamp:?} {value}: {checked:?}");
        }
    }
}

#[test]
fn a_stamp_on_two_different_calls_voids_the_check() {
    let stamp = Stamp { session: SessionId(1), sequence: Sequence(1) };
    let mut operations = vec![increment(0, (0, 10), Some(stamp), 1, Outcome::Ok(Reply::Done))];
    operations.push(increment(1, (20, 30), Some(stamp), 1, Outcome::Ok(Reply::Done)));
    operations[1].call = Call::Increment { counter: Key::from("other"), by: 1, stamp: Some(stamp) };
    let checked = judge(&History { operations, ..History::default() });
    assert!(matches!(checked.conclusion, Conclusion::Void(_)), "{checked:?}");
}

/// Every order is tried. The bounds never accuse a history that has one; that they miss a few that have none
/// is the price of looking at each value by itself.
#[test]
fn the_bounds_never_accuse_wrongly_and_miss_little() {
    let mut random = SmallRng::seed_from_u64(13);
    let (mut with, mut without, mut missed) = (0, 0, 0);
    for round in 0..6_000 {
        let length = random.random_range(2..7);
        let history = small::random(&mut random, length, |random, _| {
            let counter = Key::from("c");
            let value = Reply::Count(random.random_range(0..5));
            if random.random_bool(0.5) {
                return (Call::ReadCounter { counter }, Outcome::Ok(value));
            }
            let by = if round % 3 == 0 { random.random_range(-1..3) } else { 1 };
            let answer = if random.random_bool(0.5) { Reply::Done } else { value };
            (Call::Increment { counter, by, stamp: None }, Outcome::Ok(answer))
        });
        let expected = small::has_order(&history, &0, &|held: &i64, operation: &Operation| {
            let after = match operation.call {
                Call::Increment { by, .. } => held + by,
                _ => *held,
            };
            match operation.reply() {
                Some(Reply::Count(told)) => (*told == after).then_some(after),
                _ => Some(after),
            }
        });
        let checked = judge(&history);
        assert!(checked.held() || !expected, "round {round}: {:#?} {checked:?}", history.operations);
        *if expected { &mut with } else { &mut without } += 1;
        missed += i32::from(checked.held() && !expected);
    }
    eprintln!("{with} histories with an order, {without} without, {missed} of these missed");
    assert!(with > 500 && missed * 10 < without, "{with} {without} {missed}");
}
