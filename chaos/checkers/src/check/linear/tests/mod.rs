//! Valid histories pass, and small ones are judged as anybody would.

mod orders;
mod planted;

use std::collections::BTreeMap;
use std::time::Instant;

use rand::RngExt as _;
use rand::rngs::SmallRng;

use super::*;
use crate::check::Conclusion;
use crate::check::testing::{Executor, Slot};
use crate::history::{ClientId, Found, LogIndex, OperationId, Outcome, Refusal, Reply, Value, Version};

/// Registers that make no mistakes.
#[derive(Default)]
struct Model {
    registers: BTreeMap<u64, (u64, u64, u64)>,
    index: u64,
    value: u64,
    /// Whether answers tell versions and indexes, as one protocol does and the others do not.
    tells: bool,
    keys: u64,
    deletes: bool,
}

impl Model {
    fn act(&mut self, random: &mut SmallRng, slot: Slot) -> (Call, Outcome) {
        let number = random.random_range(0..self.keys);
        let key = Key::from(format!("r/{number}"));
        let held = self.registers.get(&number).copied();
        let current = held.map_or(0, |(_, version, _)| version);
        self.value += 1;
        let value = Value(self.value);
        match random.random_range(0..20) {
            0..=8 => (Call::Read { key }, Outcome::Ok(Reply::Value(held.map(|held| self.found(held))))),
            9..=12 => (Call::Write { key, value }, self.write(number, slot)),
            13 if self.deletes => {
                if slot.effective {
                    self.registers.remove(&number);
                }
                (Call::Delete { key }, Outcome::Ok(Reply::Done))
            }
            13..=15 => {
                let answer = match held {
                    None => self.write(number, slot),
                    Some(_) => Outcome::Ok(Reply::Refused(Refusal::Exists)),
                };
                (Call::Insert { key, value }, answer)
            }
            _ => {
                let expected = if random.random_bool(0.6) { current } else { random.random_range(0..9) };
                let answer = if expected == current {
                    self.write(number, slot)
                } else {
                    let current = self.tells.then_some(Version(current));
                    Outcome::Ok(Reply::Refused(Refusal::VersionMismatch { current }))
                };
                (Call::CompareAndSet { key, expected: Version(expected), value }, answer)
            }
        }
    }

    fn found(&self, (value, version, index): (u64, u64, u64)) -> Found {
        Found {
            value: Value(value),
            version: self.tells.then_some(Version(version)),
            index: self.tells.then_some(LogIndex(index)),
        }
    }

    fn write(&mut self, number: u64, slot: Slot) -> Outcome {
        let version = self.registers.get(&number).map_or(0, |held| held.1) + 1;
        if slot.effective {
            self.index += 1;
            self.registers.insert(number, (self.value, version, self.index));
        }
        let (version, index) = (Version(version), LogIndex(self.index));
        Outcome::Ok(Reply::Written {
            version: self.tells.then_some(version),
            index: self.tells.then_some(index),
        })
    }
}

fn model(seed: u64) -> History {
    let mut model = Model {
        tells: seed.is_multiple_of(2),
        keys: 1 + seed % 4,
        deletes: seed.is_multiple_of(3),
        ..Model::default()
    };
    Executor::new(seed).run(|random, slot| model.act(random, slot))
}

/// Without deletes, so that what is there stays there.
fn plain(seed: u64) -> History {
    let mut model = Model { tells: seed.is_multiple_of(2), keys: 1 + seed % 3, ..Model::default() };
    Executor::new(seed).run(|random, slot| model.act(random, slot))
}

fn judge(history: &History) -> Checked {
    check(history, &Rules::default())
}

#[test]
fn valid_histories_have_an_order() {
    for seed in 0..200 {
        let checked = judge(&model(seed));
        assert!(checked.held(), "seed {seed}: {checked:?}");
        assert!(checked.examined > 200);
    }
}

fn operation(id: u64, times: (u64, u64), call: Call, outcome: Outcome) -> Operation {
    Operation {
        id: OperationId(id),
        client: ClientId(u32::try_from(id).unwrap()),
        node: None,
        call,
        invoked: Micros(times.0),
        completed: Micros(times.1),
        attempts: 1,
        outcome,
    }
}

fn write(id: u64, times: (u64, u64), value: u64, known: bool) -> Operation {
    let outcome = if known {
        Outcome::Ok(Reply::Written { version: None, index: None })
    } else {
        Outcome::Unknown("no answer".into())
    };
    operation(id, times, Call::Write { key: Key::from("k"), value: Value(value) }, outcome)
}

fn read(id: u64, times: (u64, u64), value: Option<u64>) -> Operation {
    let found = value.map(|value| Found { value: Value(value), version: None, index: None });
    operation(id, times, Call::Read { key: Key::from("k") }, Outcome::Ok(Reply::Value(found)))
}

fn verdict(operations: Vec<Operation>) -> Checked {
    judge(&History { operations, ..History::default() })
}

#[test]
fn an_unknown_write_may_take_effect_late_or_never_but_not_twice() {
    let (first, second) = (write(0, (0, 10), 1, true), write(1, (20, 30), 2, false));
    let late =
        vec![first.clone(), second.clone(), read(2, (100, 110), Some(1)), read(3, (120, 130), Some(2))];
    assert!(verdict(late.clone()).held());
    assert!(verdict(late[..3].to_vec()).held(), "it may also never come");
    let mut back = late;
    back.push(read(4, (140, 150), Some(1)));
    let checked = verdict(back);
    let [violation] = checked.violations() else { panic!("{checked:?}") };
    assert_eq!(violation.operations.last(), Some(&OperationId(4)), "{violation}");
}

#[test]
fn a_violation_names_the_answer_and_what_contradicts_it() {
    let mut operations =
        vec![write(0, (0, 10), 1, true), write(1, (20, 30), 2, true), read(2, (40, 50), Some(1))];
    // What comes after does not matter, nor what was seen before.
    operations.extend((3..20).map(|id| read(id, (100 * id, 100 * id + 10), Some(2))));
    let checked = verdict(operations);
    let [violation] = checked.violations() else { panic!("{checked:?}") };
    assert_eq!(violation.rule, "stale-read");
    assert_eq!(violation.operations, [0, 1, 2].map(OperationId));
    assert!(violation.explanation.contains("operation 2 read 1 from k, which operation 1 had replaced"));
    assert!(violation.evidence[2].contains("operation 2 of client 2"), "{violation}");
}

#[test]
fn a_write_that_was_seen_took_effect_by_then() {
    let operations = vec![
        write(0, (0, 10), 1, false),
        read(1, (20, 30), Some(1)),
        write(2, (40, 50), 2, true),
        read(3, (60, 70), Some(1)),
    ];
    let checked = verdict(operations);
    assert_eq!(checked.violations()[0].rule, "stale-read", "{checked:?}");
}

#[test]
fn a_value_that_two_may_have_written_proves_neither() {
    let found = Found { value: Value(1), version: Some(Version(1)), index: None };
    let mut operations = vec![write(0, (0, 10), 1, false), write(1, (20, 30), 1, true)];
    for (id, begin) in [(2, 40), (3, 60)] {
        operations.push(Operation {
            outcome: Outcome::Ok(Reply::Value(Some(found))),
            ..read(id, (begin, begin + 10), Some(1))
        });
    }
    let checked = verdict(operations);
    assert!(checked.held(), "the first one may never have come: {checked:?}");
}

#[test]
fn many_unknown_writes_do_not_exhaust_the_search() {
    let mut operations: Vec<Operation> = (0..60).map(|id| write(id, (id, id + 1), id, false)).collect();
    operations.push(write(60, (100, 110), 100, true));
    operations.push(read(61, (120, 130), Some(100)));
    operations.push(read(62, (140, 150), None));
    let steps = Rules { steps_per_key: 20_000, ..Rules::default() };
    let history = History { operations, ..History::default() };
    assert!(!check(&history, &steps).violations().is_empty());
}

#[test]
fn a_search_that_runs_out_of_steps_says_so() {
    let history = plain(0);
    let checked = check(&history, &Rules { steps_per_key: 5, ..Rules::default() });
    assert!(matches!(checked.conclusion, Conclusion::Undecided(_)), "{checked:?}");
}

#[test]
fn fifty_thousand_operations_take_seconds() {
    let many = Executor { clients: 50, calls_per_client: 1_000, unknown_percent: 5, ..Executor::new(1) };
    // And where all clients meet at one key.
    let hot = Executor { clients: 12, calls_per_client: 800, unknown_percent: 3, ..Executor::new(2) };
    for (executor, keys, tells) in [(many, 100, false), (hot, 1, false), (hot, 1, true)] {
        let mut model = Model { tells, keys, ..Model::default() };
        let history = executor.run(|random, slot| model.act(random, slot));
        let begun = Instant::now();
        let checked = judge(&history);
        assert!(checked.held(), "{checked:?}");
        eprintln!("{} operations on {keys} keys in {:?}", history.operations.len(), begun.elapsed());
    }
}
