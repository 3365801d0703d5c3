//! Operations for Porcupine: each line has the fields of its `Operation`, and says all that is known of a call.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::processes::Processes;
use super::select::only_reads;
use crate::history::{Call, Micros, Operation, Outcome, Refusal, Reply};

/// All lines, and how many calls are in them. Whose outcome is not known returns behind everything else: there is no
/// difference between an effect that comes last and none.
pub(super) fn text(
    operations: &[Operation],
    end: Micros,
    notes: &mut BTreeMap<&'static str, usize>,
) -> (String, usize) {
    let mut processes = Processes::default();
    let (mut text, mut written) = (String::new(), 0);
    for operation in operations {
        let client = processes.of(operation);
        let Some(output) = output(operation) else {
            *notes.entry("without effect, and telling nothing").or_default() += 1;
            continue;
        };
        let open = matches!(operation.outcome, Outcome::Unknown(_));
        let line = json!({
            "ClientId": client,
            "Input": input(&operation.call),
            "Call": operation.invoked.0,
            "Output": output,
            "Return": if open { end.0.saturating_add(1) } else { operation.completed.0 },
        });
        text.push_str(&line.to_string());
        text.push('\n');
        written += 1;
    }
    (text, written)
}

fn input(call: &Call) -> Value {
    match call {
        Call::Write { key, value } => json!({ "op": "write", "key": key, "value": value }),
        Call::Insert { key, value } => json!({ "op": "insert", "key": key, "value": value }),
        Call::CompareAndSet { key, expected, value } => {
            json!({ "op": "compare-and-set", "key": key, "version": expected, "value": value })
        }
        Call::Delete { key } => json!({ "op": "delete", "key": key }),
        Call::Append { list, element } => json!({ "op": "append", "key": list, "value": element }),
        Call::Increment { counter, by, .. } => json!({ "op": "add", "key": counter, "value": by }),
        Call::Read { key } | Call::ReadList { list: key } | Call::ReadCounter { counter: key } => {
            json!({ "op": "read", "key": key })
        }
        _ => Value::Null,
    }
}

/// What an answer tells; `None` for what had no effect and tells nothing.
fn output(operation: &Operation) -> Option<Value> {
    let reply = match &operation.outcome {
        Outcome::Ok(reply) => reply,
        Outcome::Fail(_) => return None,
        Outcome::Unknown(_) if only_reads(&operation.call) => return None,
        Outcome::Unknown(_) => return Some(json!({ "outcome": "unknown" })),
    };
    Some(match reply {
        Reply::Written { version, .. } => json!({ "outcome": "ok", "version": version }),
        Reply::Value(None) => json!({ "outcome": "ok", "value": null }),
        Reply::Value(Some(found)) => json!({
            "outcome": "ok",
            "value": found.value,
            "version": found.version,
        }),
        Reply::Elements(elements) => json!({ "outcome": "ok", "value": elements }),
        Reply::Count(count) => json!({ "outcome": "ok", "value": count }),
        Reply::Refused(Refusal::Exists) => json!({ "outcome": "exists" }),
        Reply::Refused(Refusal::VersionMismatch { current }) => {
            json!({ "outcome": "mismatch", "version": current })
        }
        Reply::Refused(_) => return None,
        _ => json!({ "outcome": "ok" }),
    })
}
