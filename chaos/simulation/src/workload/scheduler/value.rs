//! Values of objects, and what a driver may read.

use prost::Message as _;
use tripod_proto::ray::Obj;

/// The key by which an error is told from a value.
const ERROR_KEY: &[u8] = b"tripod.error";
/// Reasons why the cluster may lose an object when processes die.
const REASONS: [&str; 3] = ["PUT_OBJECT", "RETRIES_EXHAUSTED", "DEPENDENCY_FAILED"];

/// What an object holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Number(u64),
    /// The id of another object.
    Holding(u64),
    /// What a task of Mars is to make of its inputs.
    Chunk {
        number: u64,
        fails: bool,
    },
    Error {
        /// It was lost, and not made: its function did not fail.
        lost: bool,
        text: String,
    },
}

/// What an object is to hold, as whoever asked for it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Number(u64),
    /// The id of an object that holds this number.
    Holding(u64),
    /// The error of a function that fails on purpose, or of one that needed its result.
    Exception,
}

impl Expected {
    /// Judges what was read. `losses`: whether processes die in this run, so that objects may be lost.
    pub(super) fn judge(self, read: &Value, losses: bool) -> Result<(), String> {
        let right = match (self, read) {
            (Self::Number(expected), Value::Number(read)) => expected == *read,
            (Self::Holding(_), Value::Holding(_)) | (Self::Exception, Value::Error { lost: false, .. }) => {
                true
            }
            (_, Value::Error { lost: true, text }) => {
                losses && REASONS.iter().any(|reason| text.contains(reason))
            }
            _ => false,
        };
        if right { Ok(()) } else { Err(format!("{self:?} was to be read, and {read:?} was")) }
    }
}

/// What a node serves in the place of an object that cannot be had.
pub(super) fn of_node(bytes: &[u8]) -> Result<Value, String> {
    let object = Obj::decode(bytes).map_err(|error| error.to_string())?;
    let entries = object.dict_data.map(|dict| dict.elem).unwrap_or_default();
    let text = |object: &Option<Obj>| {
        let text = object.as_ref().and_then(|object| object.string_data.as_ref());
        text.map(|text| text.data.clone()).unwrap_or_default()
    };
    let reason = entries.iter().find(|entry| text(&entry.key) == ERROR_KEY).map(|entry| text(&entry.value));
    let reason = reason.ok_or_else(|| "a node served what is no error".to_owned())?;
    Ok(Value::Error { lost: true, text: String::from_utf8_lossy(&reason).into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(text: &str) -> Value {
        Value::Error { lost: true, text: text.to_owned() }
    }

    #[test]
    fn only_the_right_number_is_right() {
        let expected = Expected::Number(7);
        assert_eq!(expected.judge(&Value::Number(7), false), Ok(()));
        assert!(expected.judge(&Value::Number(8), true).is_err());
        assert!(expected.judge(&Value::Error { lost: false, text: "f".into() }, true).is_err());
        assert_eq!(Expected::Exception.judge(&Value::Error { lost: false, text: "f".into() }, false), Ok(()));
    }

    #[test]
    fn a_loss_needs_a_reason_and_a_run_in_which_processes_die() {
        assert_eq!(Expected::Number(7).judge(&lost("RETRIES_EXHAUSTED"), true), Ok(()));
        assert!(Expected::Number(7).judge(&lost("RETRIES_EXHAUSTED"), false).is_err());
        assert!(Expected::Number(7).judge(&lost("RECONSTRUCTION_DISABLED"), true).is_err());
    }
}
