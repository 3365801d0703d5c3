//! Registers behave as if there were one copy, and every operation took effect at one moment between its
//! beginning and its end.
//!
//! This is linearizability, and it may be checked for each key alone. Operations with an unknown outcome may
//! take effect at any time after they were invoked, or never. Versions and log indexes are checked along with
//! the values wherever the protocol told them.

mod explain;
mod item;
mod model;
mod search;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{Checked, Rules, Violation};
use crate::history::{Call, History, Key, Micros, Operation};

use search::Found;

const CHECKER: &str = "linear";

/// Looks for a linear order of the operations on each register, apart from the others.
///
/// Undecided if the search of a key needs more steps than [`Rules::steps_per_key`] and no other key shows a
/// violation.
#[must_use]
pub fn check(history: &History, rules: &Rules) -> Checked {
    let keys = by_key(history);
    let examined = keys.values().map(Vec::len).sum();
    let mut violations: Vec<Violation> = Vec::new();
    let mut undecided: Vec<&Key> = Vec::new();
    for (key, operations) in &keys {
        match until(operations, Micros(u64::MAX), rules) {
            Found::Order => {}
            Found::NoOrder => violations.push(explain::explain(key, operations, rules)),
            Found::Unknown => undecided.push(key),
        }
    }
    if let (true, Some(first)) = (violations.is_empty(), undecided.first()) {
        let reason = format!(
            "{} of {} keys, the first one {first}, need more than {} steps",
            undecided.len(),
            keys.len(),
            rules.steps_per_key
        );
        return Checked::undecided(CHECKER, examined, reason);
    }
    Checked::told(CHECKER, examined, violations)
}

/// The operations on each register.
fn by_key(history: &History) -> BTreeMap<&Key, Vec<&Operation>> {
    let mut keys: BTreeMap<&Key, Vec<&Operation>> = BTreeMap::new();
    for operation in &history.operations {
        match &operation.call {
            Call::Read { key }
            | Call::Write { key, .. }
            | Call::Insert { key, .. }
            | Call::CompareAndSet { key, .. }
            | Call::Delete { key } => keys.entry(key).or_default().push(operation),
            _ => {}
        }
    }
    keys
}

/// The search over what had happened until `end`.
fn until(operations: &[&Operation], end: Micros, rules: &Rules) -> Found {
    search::search(&item::prepare(operations, end), rules.steps_per_key)
}
