//! A get of a key that was written is answered soon, also one that waits for the key.
//!
//! Histories do not tell which reads wait for a key, and it does not matter here: once a write of it was
//! acknowledged, nobody who reads has anything to wait for. A wake-up that is lost shows as a read that ends
//! when its client's patience does. Keys that are ever deleted are not judged, nor is anything that a fault
//! may have held up.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checked, ReleaseRule, Rules, Violation};
use crate::history::{Call, History, Key, Micros, Operation, Outcome};

const CHECKER: &str = "release";

/// Compares the end of every read with the first write of its key that was acknowledged.
#[must_use]
pub fn check(history: &History, rules: &Rules) -> Checked {
    let Some(rule) = rules.release else { return Checked::told(CHECKER, 0, Vec::new()) };
    let written = first_writes(history);
    let mut examined = 0;
    let mut violations = Vec::new();
    for read in &history.operations {
        let Call::Read { key } = &read.call else { continue };
        let Some(write) = written.get(key) else { continue };
        let free = write.completed.max(read.invoked);
        // A call that was surely not executed waited for something else.
        if read.completed < free || matches!(read.outcome, Outcome::Fail(_)) {
            continue;
        }
        examined += 1;
        if read.completed > free.plus(rule.bound) && !is_disturbed(history, free, read.completed, rule) {
            violations.push(late(key, write, read, free));
        }
    }
    Checked::told(CHECKER, examined, violations)
}

/// The write of each key that was acknowledged first, but for keys that somebody may have deleted.
fn first_writes(history: &History) -> BTreeMap<&Key, &Operation> {
    let mut written: BTreeMap<&Key, &Operation> = BTreeMap::new();
    let mut deleted: BTreeSet<&Key> = BTreeSet::new();
    for operation in &history.operations {
        match &operation.call {
            Call::Write { key, .. } | Call::Insert { key, .. } | Call::CompareAndSet { key, .. }
                if operation.acknowledged() =>
            {
                let first = written.entry(key).or_insert(operation);
                if operation.completed < first.completed {
                    *first = operation;
                }
            }
            Call::Delete { key } if operation.outcome.may_have_effect() => {
                deleted.insert(key);
            }
            _ => {}
        }
    }
    written.retain(|key, _| !deleted.contains(key));
    written
}

/// Whether a fault, or what comes after one, touches that time.
fn is_disturbed(history: &History, from: Micros, until: Micros, rule: ReleaseRule) -> bool {
    history.faults.iter().any(|fault| {
        let over = fault.ended.map_or(Micros(u64::MAX), |ended| ended.plus(rule.aftermath));
        fault.began < until && from < over
    })
}

fn late(key: &Key, write: &Operation, read: &Operation, free: Micros) -> Violation {
    let waited = Micros(read.completed.0 - free.0).as_secs_f64();
    let text = format!(
        "operation {} went on for {waited:.1} s with nothing to wait for: operation {} had written the key",
        read.id, write.id
    );
    Violation::new("late-release", key, text, &[write, read])
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;

    use super::*;
    use crate::check::testing::{Executor, Tally};
    use crate::history::{ClientId, Fault, Found, Header, Recorder, Reply, Value};

    const BOUND: Micros = Micros(6_000_000);

    /// Writes and reads of a few keys.
    fn model(seed: u64) -> History {
        let mut held: BTreeMap<u64, u64> = BTreeMap::new();
        let mut value = 0;
        Executor::new(seed).run(|random, slot| {
            let number = random.random_range(0..12);
            let key = Key::from(format!("r/{number}"));
            if random.random_bool(0.5) {
                let found = held.get(&number);
                let found = found.map(|value| Found { value: Value(*value), version: None, index: None });
                return (Call::Read { key }, Outcome::Ok(Reply::Value(found)));
            }
            value += 1;
            if slot.effective {
                held.insert(number, value);
            }
            let call = Call::Write { key, value: Value(value) };
            (call, Outcome::Ok(Reply::Written { version: None, index: None }))
        })
    }

    fn judge(history: &History) -> Checked {
        let release = ReleaseRule { bound: BOUND, aftermath: Micros(10_000_000) };
        check(history, &Rules { release: Some(release), ..Rules::default() })
    }

    #[test]
    fn reads_that_are_answered_pass() {
        for seed in 0..300 {
            let checked = judge(&model(seed));
            assert!(checked.held(), "seed {seed}: {checked:?}");
        }
        assert_eq!(check(&model(1), &Rules::default()).examined, 0, "nobody promises anything");
    }

    #[test]
    fn a_read_that_goes_on_after_its_key_was_written_is_seen() {
        Tally::all_caught(
            "lost wake-up",
            100,
            model,
            |random, history| {
                let writes: Vec<Operation> =
                    history.operations.iter().filter(|write| write.acknowledged()).cloned().collect();
                let end = history.end();
                let slow = history.operations.iter_mut().find(|read| match &read.call {
                    Call::Read { key } if !matches!(read.outcome, Outcome::Fail(_)) => writes
                        .iter()
                        .any(|write| matches!(&write.call, Call::Write { key: same, .. } if same == key)),
                    _ => false,
                });
                let Some(read) = slow else { return false };
                read.completed = Micros(end.0 + BOUND.0 + random.random_range(1..1_000_000));
                if random.random_bool(0.5) {
                    read.outcome = Outcome::Unknown("no answer within 10 s".into());
                }
                true
            },
            judge,
        );
    }

    /// A read from second 0 to second `until` of a key that is written in second 1.
    fn waited(until: u64, deletes: bool, faults: Vec<Fault>) -> Checked {
        let recorder = Recorder::new(Header::default());
        let key = Key::from("r");
        let at = |second: u64| Micros::from_millis(second * 1000);
        let read = recorder.invoke(at(0), ClientId(1), Call::Read { key: key.clone() });
        let write = Call::Write { key: key.clone(), value: Value(1) };
        let write = recorder.invoke(at(0), ClientId(2), write);
        write.complete(at(1), Outcome::Ok(Reply::Written { version: None, index: None }));
        if deletes {
            recorder
                .invoke(at(1), ClientId(2), Call::Delete { key })
                .complete(at(1), Outcome::Ok(Reply::Done));
        }
        let found = Found { value: Value(1), version: None, index: None };
        read.complete(at(until), Outcome::Ok(Reply::Value(Some(found))));
        judge(&History { faults, ..recorder.history(at(until)) })
    }

    #[test]
    fn the_bound_counts_from_the_write() {
        assert!(waited(6, false, Vec::new()).held());
        let late = waited(8, false, Vec::new());
        assert_eq!(late.violations().len(), 1, "{late:?}");
        assert!(waited(8, true, Vec::new()).held(), "a key that was deleted may be waited for again");
    }

    #[test]
    fn faults_excuse_what_they_touch() {
        let fault = |began: u64, ended: Option<u64>| Fault {
            kind: "kill-leader".into(),
            target: "node 1".into(),
            began: Micros::from_millis(began * 1000),
            ended: ended.map(|second| Micros::from_millis(second * 1000)),
            planned: None,
        };
        for (began, ended, held) in
            [(30, Some(31), true), (50, Some(51), false), (30, None, true), (0, Some(0), true)]
        {
            let checked = waited(40, false, vec![fault(began, ended)]);
            assert_eq!(checked.held(), held, "from {began} to {ended:?}: {checked:?}");
        }
    }
}
