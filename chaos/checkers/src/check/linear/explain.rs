//! Words for a register that has no linear order: the operation at which it happened, and the few that
//! contradict it.

use super::search::Found;
use super::{Rules, until};
use crate::check::Violation;
use crate::history::{Call, Key, Micros, Operation, Refusal, Reply};

/// Observations that are tried for whether the contradiction stands without them.
const OBSERVATIONS_TRIED: usize = 60;
/// Steps of each of these searches. What is not found to be needless within them is kept.
const STEPS_MAX: u64 = 50_000;
/// Operations that are told as evidence.
const SHOWN_MAX: usize = 12;

/// Explains why `operations` on `key`, which have no linear order, have none.
pub(super) fn explain(key: &Key, operations: &[&Operation], rules: &Rules) -> Violation {
    let last = first_contradiction(operations, rules);
    let before: Vec<&Operation> =
        operations.iter().copied().filter(|operation| operation.invoked <= last.completed).collect();
    let needed = without_needless(before, last, rules);
    let (rule, explanation) = name(key, &needed, last);
    Violation::new(rule, key, explanation, &evidence(&needed, last))
}

/// The answer with which the history first had no order: up to any earlier one there was still one. What has
/// no order cannot get one by what comes later.
fn first_contradiction<'a>(operations: &[&'a Operation], rules: &Rules) -> &'a Operation {
    let mut answered: Vec<&Operation> =
        operations.iter().copied().filter(|operation| operation.reply().is_some()).collect();
    answered.sort_by_key(|operation| (operation.completed, operation.id));
    let broken = |operation: &&Operation| until(operations, operation.completed, rules) == Found::NoOrder;
    let first = answered.partition_point(|operation| !broken(operation));
    answered[first.min(answered.len() - 1)]
}

/// Drops the observations that the contradiction does not need, the newest first. Dropping an observation
/// never makes a contradiction; dropping a write would.
fn without_needless<'a>(
    mut operations: Vec<&'a Operation>,
    last: &Operation,
    rules: &Rules,
) -> Vec<&'a Operation> {
    let rules = Rules { steps_per_key: STEPS_MAX.min(rules.steps_per_key), ..*rules };
    let mut tried = 0;
    for at in (0..operations.len()).rev() {
        let operation = operations[at];
        if operation.id == last.id || !observes(operation) {
            continue;
        }
        tried += 1;
        if tried > OBSERVATIONS_TRIED {
            break;
        }
        operations.remove(at);
        if until(&operations, last.completed, &rules) != Found::NoOrder {
            operations.insert(at, operation);
        }
    }
    operations
}

fn observes(operation: &Operation) -> bool {
    matches!(operation.reply(), Some(Reply::Value(_) | Reply::Refused(_)))
}

fn name(key: &Key, operations: &[&Operation], last: &Operation) -> (&'static str, String) {
    let id = last.id;
    let superseded = |writer: &Operation| {
        operations.iter().find(|other| {
            other.acknowledged()
                && other.call.writes()
                && writer.completed < other.invoked
                && other.completed < last.invoked
        })
    };
    match last.reply() {
        Some(Reply::Value(Some(found))) => {
            let writers: Vec<&&Operation> =
                operations.iter().filter(|other| written(other) == Some(found.value.0)).collect();
            let Some(writer) = writers.first() else {
                let text = format!("operation {id} read {} from {key}, which nobody wrote", found.value);
                return ("phantom-value", text);
            };
            if !writer.outcome.may_have_effect() {
                let text = format!(
                    "operation {id} read {} from {key}, though its write, operation {}, surely had no effect",
                    found.value, writer.id
                );
                return ("phantom-value", text);
            }
            if writer.invoked > last.completed {
                let text = format!("operation {id} read {} from {key} before it was written", found.value);
                return ("phantom-value", text);
            }
            if let Some(newer) = superseded(writer) {
                let text = format!(
                    "operation {id} read {} from {key}, which operation {} had replaced and was acknowledged \
                     before the read began",
                    found.value, newer.id
                );
                return ("stale-read", text);
            }
        }
        Some(
            Reply::Value(None) | Reply::Refused(Refusal::VersionMismatch { .. }) | Reply::Written { .. },
        ) => {
            let gone = matches!(last.reply(), Some(Reply::Value(None)));
            let writer = operations.iter().rfind(|other| {
                other.acknowledged() && other.completed < last.invoked && written(other).is_some()
            });
            let deleted = operations.iter().any(|other| matches!(other.call, Call::Delete { .. }));
            if let (true, Some(writer), false) = (gone, writer, deleted) {
                let text = format!(
                    "operation {id} found nothing at {key}, though the write of operation {} was \
                    acknowledged before and nobody deleted it",
                    writer.id
                );
                return ("lost-write", text);
            }
        }
        _ => {}
    }
    let text = format!(
        "no order of the operations on {key} explains what operation {id} was told: every order that \
        respects time contradicts this answer or an earlier one"
    );
    ("not-linearizable", text)
}

/// The value that an operation asks to be written.
fn written(operation: &Operation) -> Option<u64> {
    match &operation.call {
        Call::Write { value, .. } | Call::Insert { value, .. } | Call::CompareAndSet { value, .. } => {
            Some(value.0)
        }
        _ => None,
    }
}

/// The last answer, the observations that contradict it, who wrote what they saw, and the writes around them.
fn evidence<'a>(operations: &[&'a Operation], last: &'a Operation) -> Vec<&'a Operation> {
    let mut shown: Vec<&Operation> = vec![last];
    let observations = operations.iter().rev().filter(|operation| observes(operation));
    shown.extend(observations.take(SHOWN_MAX / 3).copied());
    let seen: Vec<u64> = shown
        .iter()
        .filter_map(|operation| match operation.reply() {
            Some(Reply::Value(Some(found))) => Some(found.value.0),
            _ => None,
        })
        .collect();
    let from = shown.iter().map(|operation| operation.invoked).min().unwrap_or(Micros(0));
    let writers = operations.iter().filter(|other| written(other).is_some_and(|value| seen.contains(&value)));
    shown.extend(writers.take(SHOWN_MAX / 3));
    let around = operations.iter().rev().filter(|other| other.call.writes() && other.completed >= from);
    shown.extend(around.take(SHOWN_MAX / 3));
    let before = operations
        .iter()
        .rfind(|other| other.call.writes() && other.acknowledged() && other.completed < last.invoked);
    shown.extend(before);
    shown
}
