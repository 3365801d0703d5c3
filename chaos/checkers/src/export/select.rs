//! The calls on one kind of objects.

use std::collections::BTreeSet;

use super::Objects;
use crate::history::{Call, History, Key, Operation};

/// Names that are told to whoever asked for one that is not there, at most.
const NAMES_MAX: usize = 8;

/// The calls on `objects`, or on one of them, in the order in which they were invoked.
///
/// # Errors
/// There is none.
pub(super) fn select(
    history: &History,
    objects: Objects,
    key: Option<&Key>,
) -> anyhow::Result<Vec<Operation>> {
    let of_kind = |operation: &&Operation| named(&operation.call).is_some_and(|(kind, _)| kind == objects);
    let wanted = |operation: &&Operation| key.is_none_or(|key| key_of(&operation.call) == Some(key));
    let selected: Vec<Operation> =
        history.operations.iter().filter(of_kind).filter(wanted).cloned().collect();
    if selected.is_empty() {
        let all = history.operations.iter().filter(of_kind).filter_map(|operation| key_of(&operation.call));
        let names: BTreeSet<&str> = all.map(Key::as_str).collect();
        let some: Vec<&str> = names.iter().copied().take(NAMES_MAX).collect();
        anyhow::ensure!(!some.is_empty(), "the history has no calls on {}", objects.name());
        let (wanted, kind) = (key.map_or("", Key::as_str), objects.name());
        anyhow::bail!("no call is on {wanted}; of {} {kind} the first are {}", names.len(), some.join(", "));
    }
    Ok(selected)
}

/// The name of what a call is on, if it can be exported.
pub(super) fn key_of(call: &Call) -> Option<&Key> {
    named(call).map(|(_, key)| key)
}

fn named(call: &Call) -> Option<(Objects, &Key)> {
    match call {
        Call::Read { key }
        | Call::Write { key, .. }
        | Call::Insert { key, .. }
        | Call::CompareAndSet { key, .. }
        | Call::Delete { key } => Some((Objects::Registers, key)),
        Call::Append { list, .. } | Call::ReadList { list } => Some((Objects::Lists, list)),
        Call::Increment { counter, .. } | Call::ReadCounter { counter } => Some((Objects::Counters, counter)),
        _ => None,
    }
}

/// Whether a call changes nothing, so that it may as well never have been made if it was not answered.
pub(super) fn only_reads(call: &Call) -> bool {
    matches!(call, Call::Read { .. } | Call::ReadList { .. } | Call::ReadCounter { .. })
}
