//! What was acknowledged is there at the end.
//!
//! The other checkers prove more, but may run out of their budget. This one looks only at the last reads,
//! those of registers that nobody was writing any more, and is always done in one pass.

use std::collections::BTreeMap;

use super::{Checked, Rules, Violation};
use crate::history::{Call, History, Key, Operation, Reply, Value};

const CHECKER: &str = "kept";

/// Compares the last reads of every register with the writes that were acknowledged.
#[must_use]
pub fn check(history: &History, _rules: &Rules) -> Checked {
    let mut keys: BTreeMap<&Key, (Vec<&Operation>, Vec<&Operation>)> = BTreeMap::new();
    for operation in &history.operations {
        match &operation.call {
            Call::Write { key, .. }
            | Call::Insert { key, .. }
            | Call::CompareAndSet { key, .. }
            | Call::Delete { key }
                if operation.outcome.may_have_effect() =>
            {
                keys.entry(key).or_default().0.push(operation);
            }
            Call::Read { key } if matches!(operation.reply(), Some(Reply::Value(_))) => {
                keys.entry(key).or_default().1.push(operation);
            }
            _ => {}
        }
    }
    let mut examined = 0;
    let mut violations = Vec::new();
    for (key, (writes, reads)) in &keys {
        let quiet = writes.iter().map(|write| write.completed).max();
        let last: Vec<&&Operation> = reads.iter().filter(|read| Some(read.invoked) > quiet).collect();
        examined += last.len();
        let possible = not_replaced(writes);
        violations.extend(last.iter().find_map(|read| judge(key, writes, &possible, read)));
    }
    Checked::told(CHECKER, examined, violations)
}

/// The writes that no acknowledged write has surely replaced.
fn not_replaced<'a>(writes: &[&'a Operation]) -> Vec<&'a Operation> {
    let newest = writes.iter().filter(|write| write.acknowledged()).map(|write| write.invoked).max();
    // What is not known may still take effect after everything else.
    let open = |write: &&&'a Operation| !write.acknowledged() || Some(write.completed) >= newest;
    writes.iter().filter(open).copied().collect()
}

fn judge(key: &Key, writes: &[&Operation], possible: &[&Operation], read: &Operation) -> Option<Violation> {
    let Some(Reply::Value(found)) = read.reply() else { return None };
    let explains = |write: &&Operation| written(write) == found.map(|found| found.value);
    let nothing_kept = !writes.iter().any(|write| write.acknowledged());
    if possible.iter().any(explains) || (found.is_none() && nothing_kept) {
        return None;
    }
    let last = writes.iter().filter(|write| write.acknowledged()).max_by_key(|write| write.completed)?;
    let saw = found.map_or("nothing".to_owned(), |found| format!("value {}", found.value));
    let text = format!(
        "at the end operation {} found {saw}, though operation {} was acknowledged last",
        read.id, last.id
    );
    Some(Violation::new("lost-acknowledged-write", key, text, &[last, read]))
}

/// What an operation leaves in a register; `None`: nothing.
fn written(operation: &Operation) -> Option<Value> {
    match &operation.call {
        Call::Write { value, .. } | Call::Insert { value, .. } | Call::CompareAndSet { value, .. } => {
            Some(*value)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;

    use super::*;
    use crate::check::testing::{Executor, Tally};
    use crate::history::{ClientId, Found, Micros, OperationId, Outcome};

    /// Few writes to many keys, and at the end a read of each.
    fn model(seed: u64) -> History {
        let mut held: BTreeMap<u64, u64> = BTreeMap::new();
        let mut value = 0;
        let deletes = seed.is_multiple_of(2);
        let mut history = Executor::new(seed).run(|random, slot| {
            let number = random.random_range(0..40);
            let key = Key::from(format!("r/{number}"));
            value += 1;
            if deletes && random.random_bool(0.2) {
                if slot.effective {
                    held.remove(&number);
                }
                return (Call::Delete { key }, Outcome::Ok(Reply::Done));
            }
            if slot.effective {
                held.insert(number, value);
            }
            let call = Call::Write { key, value: Value(value) };
            (call, Outcome::Ok(Reply::Written { version: None, index: None }))
        });
        let mut now = history.end().plus(Micros(40_000)).0;
        for number in 0..40 {
            let found =
                held.get(&number).map(|value| Found { value: Value(*value), version: None, index: None });
            history.operations.push(Operation {
                id: OperationId(history.operations.len() as u64),
                client: ClientId(0),
                node: None,
                call: Call::Read { key: Key::from(format!("r/{number}")) },
                invoked: Micros(now),
                completed: Micros(now + 5),
                attempts: 1,
                outcome: Outcome::Ok(Reply::Value(found)),
            });
            now += 10;
        }
        history
    }

    fn judge(history: &History) -> Checked {
        check(history, &Rules::default())
    }

    #[test]
    fn valid_histories_pass() {
        for seed in 0..200 {
            let checked = judge(&model(seed));
            assert!(checked.held() && checked.examined == 40, "seed {seed}: {checked:?}");
        }
    }

    #[test]
    fn an_acknowledged_write_that_is_gone_is_seen() {
        let without_deletes = |seed| model(2 * seed + 1);
        Tally::all_caught(
            "acknowledged write gone",
            100,
            without_deletes,
            |random, history| {
                let kept: Vec<Key> = history
                    .operations
                    .iter()
                    .filter(|operation| operation.acknowledged())
                    .filter_map(|operation| match &operation.call {
                        Call::Write { key, .. } => Some(key.clone()),
                        _ => None,
                    })
                    .collect();
                let key = &kept[random.random_range(0..kept.len())];
                for operation in &mut history.operations {
                    if matches!(&operation.call, Call::Read { key: other } if other == key) {
                        operation.outcome = Outcome::Ok(Reply::Value(None));
                    }
                }
                true
            },
            judge,
        );
    }

    #[test]
    fn a_value_that_was_replaced_long_ago_is_seen() {
        Tally::all_caught(
            "old value at the end",
            100,
            model,
            |random, history| {
                let mut pairs = Vec::new();
                for old in history.operations.iter().filter(|operation| operation.acknowledged()) {
                    let Call::Write { key, value } = &old.call else { continue };
                    let replaced = history.operations.iter().any(|new| {
                        new.acknowledged()
                            && new.invoked > old.completed
                            && matches!(&new.call, Call::Write { key: other, .. } if other == key)
                    });
                    if replaced {
                        pairs.push((key.clone(), *value));
                    }
                }
                let (key, value) = pairs[random.random_range(0..pairs.len())].clone();
                for operation in &mut history.operations {
                    if matches!(&operation.call, Call::Read { key: other } if *other == key) {
                        let found = Found { value, version: None, index: None };
                        operation.outcome = Outcome::Ok(Reply::Value(Some(found)));
                    }
                }
                true
            },
            judge,
        );
    }
}
