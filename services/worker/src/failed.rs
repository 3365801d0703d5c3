//! Errors as objects: what the results of a failed task hold. A dictionary with the key [`KEY`], which workers in
//! every language and the nodes themselves write.

use serde::{Deserialize, Serialize};
use tripod_proto::ray::Obj;

use crate::error::TaskError;
use crate::value::{from_obj, to_obj};

/// By this key an error is told from a value. Its value is the reason.
pub(crate) const KEY: &str = "tripod.error";
/// The reason of errors that come from the function itself.
pub(crate) const EXCEPTION: &str = "exception";

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
    let Written { reason, function, text, history } = from_obj(object).ok()?;
    Some(TaskError { reason, function, text, history })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

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
