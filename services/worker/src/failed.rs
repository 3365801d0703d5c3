//! Errors as objects: what the results of a failed task hold. A dictionary with the key [`KEY`], which workers in
//! every language and the nodes themselves write.

use serde::{Deserialize, Serialize};
use tripod_proto::ray::Obj;

use crate::error::TaskError;
use crate::value::{from_obj, to_obj};

/// By this key an error is told from a value. Its value is the reason.
pub(crate) const KEY: &str = "tripod.error";
/// The reason of errors that come from the function itself.
pub(crate) const EXCEPTION: &str = "EXCEPTION";

#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(rename = "tripod.error")]
    reason: String,
    #[serde(default)]
    function: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    history: Vec<String>,
}

/// The error of a function that failed by itself.
pub(crate) fn exception(function: &str, text: String) -> TaskError {
    TaskError { reason: EXCEPTION.to_owned(), function: function.to_owned(), text, history: Vec::new() }
}

/// The error of a task whose argument in that place is a failed object. If that was lost, so is what the task was to
/// make: its driver is told the same whether the argument was lost before a worker had the task or after.
pub(crate) fn by_argument(function: &str, place: usize, object: u64, argument: &TaskError) -> TaskError {
    let text = format!(
        "argument {place} of function {function} was produced by failed {}: {}",
        argument.function, argument.text
    );
    let error = exception(function, text);
    if argument.is_exception() {
        return error;
    }
    TaskError { reason: format!("DEPENDENCY_FAILED({object})"), ..error }
}

/// The object that stands for an error.
pub(crate) fn write(error: &TaskError) -> Obj {
    let TaskError { reason, function, text, history } = error.clone();
    to_obj(&Written { reason, function, text, history }).expect("texts are written")
}

/// The error that an object stands for, if it does.
pub(crate) fn read(object: &Obj) -> Option<TaskError> {
    let dict = object.dict_data.as_ref()?;
    let is_key = |key: &Obj| key.string_data.as_ref().is_some_and(|text| text.data == KEY.as_bytes());
    dict.elem.iter().find(|entry| entry.key.as_ref().is_some_and(is_key))?;
    let Written { mut reason, function, text, history } = from_obj(object).ok()?;
    // Workers of before wrote it so.
    if reason.eq_ignore_ascii_case(EXCEPTION) {
        EXCEPTION.clone_into(&mut reason);
    }
    Some(TaskError { reason, function, text, history })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_task_whose_argument_was_lost_fails_as_if_it_had_not_been_given_out() {
        let of = |reason: &str| TaskError { reason: reason.into(), ..exception("add", "gone".into()) };
        let lost = by_argument("sum", 2, 133, &of("PUT_OBJECT"));
        assert_eq!(lost.reason, "DEPENDENCY_FAILED(133)");
        assert_eq!(lost.to_string(), "sum: argument 2 of function sum was produced by failed add: gone");
        assert_eq!(by_argument("sum", 2, 133, &of(EXCEPTION)).reason, EXCEPTION);
    }

    #[test]
    fn the_word_for_exceptions_of_earlier_workers_is_understood() {
        let written = write(&TaskError { reason: "exception".into(), ..exception("add", String::new()) });
        assert!(read(&written).is_some_and(|error| error.is_exception()));
    }

    #[test]
    fn an_error_is_told_from_values() {
        let error = TaskError {
            reason: EXCEPTION.into(),
            function: "add".into(),
            text: "overflow".into(),
            history: vec!["worker 3 died".into()],
        };
        assert_eq!(read(&write(&error)), Some(error));
        let table: BTreeMap<&str, &str> = [("reason", "none")].into();
        assert_eq!(read(&to_obj(&table).unwrap()), None);
        assert_eq!(read(&to_obj(&"tripod.error").unwrap()), None);
    }
}
