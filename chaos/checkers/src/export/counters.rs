//! Counters, as checkers see them that know no stamps: each increment counts once.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Call, Key, Operation, Outcome, Stamp};

use super::select::key_of;

/// Makes one call of the calls with one stamp, which count once together. Counters of which that cannot be said are left
/// out: an increment without a stamp that was sent more than once may have counted as often. With `rising`, so are those
/// that something was taken from, which Jepsen's checker does not know.
pub(super) fn count_once(
    operations: &mut Vec<Operation>,
    rising: bool,
    notes: &mut BTreeMap<&'static str, usize>,
) {
    leave_out(operations, notes, "on counters that may have counted an increment twice", |call, attempts| {
        matches!(call, Call::Increment { stamp: None, .. }) && attempts > 1
    });
    if rising {
        leave_out(
            operations,
            notes,
            "on counters that also fall",
            |call, _| matches!(call, Call::Increment { by, .. } if *by < 0),
        );
    }
    let mut together: Vec<Operation> = Vec::with_capacity(operations.len());
    let mut places: BTreeMap<Stamp, usize> = BTreeMap::new();
    for operation in operations.drain(..) {
        let Call::Increment { stamp: Some(stamp), .. } = &operation.call else {
            together.push(operation);
            continue;
        };
        let place = *places.entry(*stamp).or_insert(together.len());
        match together.get_mut(place) {
            Some(first) => merge(first, operation),
            None => together.push(operation),
        }
    }
    *operations = together;
}

fn leave_out(
    operations: &mut Vec<Operation>,
    notes: &mut BTreeMap<&'static str, usize>,
    why: &'static str,
    unfit: impl Fn(&Call, u32) -> bool,
) {
    let unfit: BTreeSet<Key> = operations
        .iter()
        .filter(|operation| operation.outcome.may_have_effect() && unfit(&operation.call, operation.attempts))
        .filter_map(|operation| key_of(&operation.call).cloned())
        .collect();
    let before = operations.len();
    operations.retain(|operation| key_of(&operation.call).is_none_or(|key| !unfit.contains(key)));
    if operations.len() < before {
        notes.insert(why, before - operations.len());
    }
}

/// The same increment once more: it took effect before the first of its acknowledgements, if there is one.
fn merge(first: &mut Operation, again: Operation) {
    match (first.acknowledged(), again.acknowledged()) {
        (true, true) if again.completed >= first.completed => {}
        (_, true) => (first.completed, first.outcome) = (again.completed, again.outcome),
        (true, false) => {}
        (false, false) => {
            first.completed = first.completed.max(again.completed);
            if matches!(again.outcome, Outcome::Unknown(_)) {
                first.outcome = again.outcome;
            }
        }
    }
}
