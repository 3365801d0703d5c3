//! Registers for Knossos (`cas-register`), and counters for Jepsen's checker (`counter`).
//!
//! A register that does not exist is `nil`, as at the beginning; so a delete writes `nil`, and an insert is a
//! compare-and-set of `nil`. Knossos takes a read of `nil` for one whose answer is not known.

use std::collections::BTreeMap;

use super::edn::{Ended, NIL, Op, quoted};
use super::processes::Processes;
use super::select::key_of;
use super::versions::{Held, Versions};
use crate::history::{Call, Operation, Reply};

/// `alone`: all calls are on one register, which is not named then.
pub(super) fn registers(
    operations: &[Operation],
    alone: bool,
    notes: &mut BTreeMap<&'static str, usize>,
) -> Vec<Op> {
    let versions = Versions::of(operations);
    let mut processes = Processes::default();
    let mut ops = Vec::with_capacity(operations.len());
    for operation in operations {
        let (f, asked) = match &operation.call {
            Call::Write { value, .. } => ("write", value.to_string()),
            Call::Delete { .. } => ("write", NIL.to_owned()),
            Call::Insert { value, .. } => ("cas", format!("[{NIL} {value}]")),
            Call::CompareAndSet { key, expected, value } => match versions.held(key, *expected) {
                Held::Nothing => ("cas", format!("[{NIL} {value}]")),
                Held::Value(old) => ("cas", format!("[{old} {value}]")),
                Held::NotKnown => {
                    if Ended::of(operation) != Ended::Fail {
                        *notes
                            .entry("compare-and-sets as mere writes: the value is not known")
                            .or_default() += 1;
                    }
                    ("write", value.to_string())
                }
            },
            _ => ("read", NIL.to_owned()),
        };
        let told = match operation.reply() {
            Some(Reply::Value(found)) => {
                Some(found.map_or_else(|| NIL.to_owned(), |found| found.value.to_string()))
            }
            _ => None,
        };
        ops.push(op(&mut processes, operation, f, asked, told, alone));
    }
    ops
}

/// `alone`: as for registers.
pub(super) fn counters(operations: &[Operation], alone: bool) -> Vec<Op> {
    let mut processes = Processes::default();
    let mut ops = Vec::with_capacity(operations.len());
    for operation in operations {
        let (f, asked, told) = match (&operation.call, operation.reply()) {
            (Call::Increment { by, .. }, _) => ("add", by.to_string(), None),
            (_, Some(Reply::Count(count))) => ("read", NIL.to_owned(), Some(count.to_string())),
            _ => ("read", NIL.to_owned(), None),
        };
        ops.push(op(&mut processes, operation, f, asked, told, alone));
    }
    ops
}

/// Of one object among several, a value stands behind the object's name, as `jepsen.independent` has it.
fn op(
    processes: &mut Processes,
    operation: &Operation,
    f: &'static str,
    asked: String,
    told: Option<String>,
    alone: bool,
) -> Op {
    let name = key_of(&operation.call).filter(|_| !alone).map(|key| quoted(key.as_str()));
    let named = |value: String| match &name {
        Some(name) => format!("[{name} {value}]"),
        None => value,
    };
    Op::new(processes, operation, f, named(asked), told.map(&named))
}
