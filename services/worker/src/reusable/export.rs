//! A variable's value on its way from a driver to the workers.

use prost::Message as _;
use serde::Serialize;
use tripod_proto::ray::{Function, Obj, ReusableVar};

use crate::value::{ValueError, ids_inside, to_obj};

/// How a value of ours begins, where other languages have a function: their workers leave it alone, and we leave theirs.
const MAGIC: &[u8] = b"TRV1";

/// The value as it travels.
///
/// # Errors
/// It is no object, or refers to some: nobody would keep them.
pub(crate) fn write<T: Serialize + ?Sized>(name: &str, value: &T) -> Result<ReusableVar, ValueError> {
    let value = to_obj(value)?;
    if !ids_inside(&value).is_empty() {
        let text = format!(
            "reusable variable `{name}` has references to objects inside, which it would not keep; next: give them to \
             tasks as arguments"
        );
        return Err(ValueError(text));
    }
    let mut implementation = MAGIC.to_vec();
    value.encode(&mut implementation).expect("a vector has room");
    let initializer = Some(Function { implementation: implementation.into() });
    Ok(ReusableVar { name: name.as_bytes().to_vec().into(), initializer, reinitializer: None })
}

/// The value, or why it is none. `None`: it was not exported by this crate.
pub(super) fn read(variable: &ReusableVar) -> Option<Result<Obj, String>> {
    let value = variable.initializer.as_ref()?.implementation.strip_prefix(MAGIC)?;
    Some(Obj::decode(value).map_err(|error| format!("its value cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ObjectId;
    use crate::value::from_obj;

    #[test]
    fn a_value_survives_its_way_and_those_of_other_languages_are_none() {
        let mut variable = write("words", &["a", "the"]).unwrap();
        assert_eq!(&*variable.name, b"words");
        let value = read(&variable).unwrap().unwrap();
        assert_eq!(from_obj::<Vec<String>>(&value).unwrap(), ["a", "the"]);

        let as_it_was = variable.initializer.clone().unwrap().implementation;
        for foreign in [&b"TPV1"[..], b"", b"TRV"] {
            variable.initializer = Some(Function { implementation: foreign.to_vec().into() });
            assert!(read(&variable).is_none(), "{foreign:?}");
        }
        variable.initializer = None;
        assert!(read(&variable).is_none());

        let cut = as_it_was.slice(..as_it_was.len() - 1);
        variable.initializer = Some(Function { implementation: cut });
        let why = read(&variable).unwrap().unwrap_err();
        assert!(why.contains("cannot be read"), "{why}");
    }

    #[test]
    fn references_to_objects_are_not_exported() {
        let refused = write("handles", &[ObjectId(3)]).unwrap_err().to_string();
        assert!(refused.contains("`handles`") && refused.contains("references"), "{refused}");
    }
}
