//! Transactions of one step or two for Elle: lists that are appended to (`list-append`), and registers (`rw-register`).

use std::collections::BTreeMap;

use super::edn::{NIL, Op, quoted};
use super::processes::Processes;
use super::select::key_of;
use super::versions::{Held, Versions};
use crate::history::{Call, Operation, Reply};

const TRANSACTION: &str = "txn";

pub(super) fn lists(operations: &[Operation]) -> Vec<Op> {
    let mut processes = Processes::default();
    let mut ops = Vec::with_capacity(operations.len());
    for operation in operations {
        let (asked, told) = match (&operation.call, operation.reply()) {
            (Call::Append { list, element }, _) => {
                (format!("[[:append {} {element}]]", quoted(list.as_str())), None)
            }
            (Call::ReadList { list }, reply) => {
                let list = quoted(list.as_str());
                let told = match reply {
                    Some(Reply::Elements(elements)) => {
                        let all: Vec<String> = elements.iter().map(ToString::to_string).collect();
                        Some(format!("[[:r {list} [{}]]]", all.join(" ")))
                    }
                    _ => None,
                };
                (format!("[[:r {list} {NIL}]]"), told)
            }
            _ => continue,
        };
        ops.push(Op::new(&mut processes, operation, TRANSACTION, asked, told));
    }
    ops
}

/// Registers that were deleted are left out: Elle takes each value for one that was written once, and nothing for how
/// everything begins.
pub(super) fn registers(operations: &[Operation], notes: &mut BTreeMap<&'static str, usize>) -> Vec<Op> {
    let versions = Versions::of(operations);
    let mut processes = Processes::default();
    let mut ops = Vec::with_capacity(operations.len());
    for operation in operations {
        let Some(key) = key_of(&operation.call) else { continue };
        if versions.was_deleted(key) {
            *notes.entry("on registers that were deleted, which Elle does not know").or_default() += 1;
            continue;
        }
        let name = quoted(key.as_str());
        let read = |value: String| format!("[:r {name} {value}]");
        // What a condition proves is a read in the same transaction.
        let conditional = |held: Held, value: u64| {
            let write = format!("[:w {name} {value}]");
            match held {
                Held::NotKnown => (format!("[{write}]"), None),
                Held::Nothing => (format!("[{} {write}]", read(NIL.to_owned())), None),
                Held::Value(old) => (
                    format!("[{} {write}]", read(NIL.to_owned())),
                    Some(format!("[{} {write}]", read(old.to_string()))),
                ),
            }
        };
        let (asked, told) = match (&operation.call, operation.reply()) {
            (Call::Write { value, .. }, _) => conditional(Held::NotKnown, value.0),
            (Call::Insert { value, .. }, _) => conditional(Held::Nothing, value.0),
            (Call::CompareAndSet { key, expected, value }, _) => {
                conditional(versions.held(key, *expected), value.0)
            }
            (_, Some(Reply::Value(Some(found)))) => {
                (format!("[{}]", read(NIL.to_owned())), Some(format!("[{}]", read(found.value.to_string()))))
            }
            // Nothing there, or no answer: the value stays `nil`. A delete comes here only if it had no effect.
            _ => (format!("[{}]", read(NIL.to_owned())), None),
        };
        ops.push(Op::new(&mut processes, operation, TRANSACTION, asked, told));
    }
    ops
}
