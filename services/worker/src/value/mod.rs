//! Rust values as the objects of the scheduler's protocol (`Obj`), which Python's workers and drivers read too.
//!
//! | Rust | `Obj` |
//! |---|---|
//! | `bool`, integers, floats | `bool_data`, `int_data`, `double_data` |
//! | text, bytes ([`Blob`]) | `string_data` |
//! | `()`, `None` | `empty_data` |
//! | sequences, tuples | `list_data`, `tuple_data` |
//! | maps, structs | `dict_data`; a struct's keys are its fields' names |
//! | a variant without content, with content | its name; a `dict_data` of its name and its content |
//! | [`crate::ObjectId`], [`crate::ObjectRef`] | `objectid_data` |
//!
//! An object may not contain itself, and nothing is deeper than [`DEPTH_MAX`]: deeper messages are not read by
//! protobuf's libraries.

mod blob;
mod de;
mod ser;

use tripod_proto::ray::{Obj, ObjId};

pub use blob::Blob;
pub use de::from_obj;
pub use ser::to_obj;

/// How deep values may be nested: each level is three messages, and protobuf's libraries read a hundred.
pub const DEPTH_MAX: usize = 30;

/// By this name an id of an object is recognised among all other values.
pub(crate) const OBJECT_ID: &str = "$tripod::ObjectId";

/// Why a value is no object, or an object is not the value that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(pub(crate) String);

impl serde::ser::Error for ValueError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl serde::de::Error for ValueError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// The ids of objects inside a value, once per occurrence, in its order.
#[must_use]
pub fn ids_inside(value: &Obj) -> Vec<u64> {
    let mut found = Vec::new();
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        if let Some(ObjId { data }) = &value.objectid_data {
            found.push(*data);
        }
        found.extend(value.array_data.iter().flat_map(|array| array.objectid_data.iter()));
        let dict = value.dict_data.iter().flat_map(|dict| dict.elem.iter());
        let elements = value.list_data.iter().flat_map(|list| list.elem.iter());
        let elements = elements.chain(value.tuple_data.iter().flat_map(|tuple| tuple.elem.iter()));
        let from = left.len();
        left.extend(dict.flat_map(|entry| entry.key.iter().chain(entry.value.iter())).chain(elements));
        left[from..].reverse();
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::ObjectId;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Dot,
        Circle(f64),
        Box { width: u32, height: u32 },
        Pair(i8, i8),
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Everything {
        flag: bool,
        small: i8,
        large: u64,
        real: f32,
        letter: char,
        text: String,
        nothing: (),
        absent: Option<i32>,
        present: Option<i32>,
        list: Vec<u16>,
        pair: (i32, String),
        table: BTreeMap<String, i64>,
        by_number: BTreeMap<u32, bool>,
        shapes: Vec<Shape>,
        object: ObjectId,
        objects: Vec<ObjectId>,
    }

    fn everything() -> Everything {
        Everything {
            flag: true,
            small: -7,
            large: u64::from(u32::MAX) + 1,
            real: 0.5,
            letter: 'ß',
            text: "text".into(),
            nothing: (),
            absent: None,
            present: Some(0),
            list: vec![1, 2],
            pair: (-1, "x".into()),
            table: [("a".to_owned(), 1), ("b".to_owned(), -2)].into(),
            by_number: [(7, true)].into(),
            shapes: vec![
                Shape::Dot,
                Shape::Circle(1.5),
                Shape::Box { width: 1, height: 2 },
                Shape::Pair(3, -4),
            ],
            object: ObjectId(0),
            objects: vec![ObjectId(9), ObjectId(8), ObjectId(9)],
        }
    }

    #[test]
    fn every_kind_of_value_survives() {
        let value = everything();
        let object = to_obj(&value).unwrap();
        assert_eq!(from_obj::<Everything>(&object).unwrap(), value);
    }

    #[test]
    fn ids_inside_a_value_are_found_in_their_order_and_as_often_as_they_occur() {
        assert_eq!(ids_inside(&to_obj(&everything()).unwrap()), [0, 9, 8, 9]);
        assert_eq!(ids_inside(&to_obj(&5).unwrap()), [0u64; 0]);
    }

    #[test]
    fn what_python_writes_is_read() {
        let int = |data| Obj { int_data: Some(tripod_proto::ray::Int { data }), ..Obj::default() };
        let long = Obj { long_data: Some(tripod_proto::ray::Long { data: 5 }), ..Obj::default() };
        let tuple = tripod_proto::ray::Tuple { elem: vec![int(1), long] };
        let tuple = Obj { tuple_data: Some(tuple), ..Obj::default() };
        assert_eq!(from_obj::<Vec<i64>>(&tuple).unwrap(), [1, 5]);
        assert_eq!(from_obj::<f64>(&int(3)).unwrap(), 3.0, "a whole number where a real one is asked for");
    }

    #[test]
    fn what_cannot_be_written_or_read_is_refused_with_a_reason() {
        let large = to_obj(&u64::MAX).unwrap_err().to_string();
        assert!(large.contains("18446744073709551615"), "{large}");
        let wrong = from_obj::<bool>(&to_obj("text").unwrap()).unwrap_err().to_string();
        assert!(wrong.contains("text") && wrong.contains("bool"), "{wrong}");
        let narrow = from_obj::<u8>(&to_obj(&300).unwrap()).unwrap_err().to_string();
        assert!(narrow.contains("300"), "{narrow}");
        assert!(from_obj::<i32>(&Obj::default()).is_err());
    }

    #[test]
    fn a_value_that_is_too_deep_is_refused_and_not_written_for_nobody() {
        #[derive(Serialize)]
        struct Deep(Option<Vec<Deep>>);
        let deep = |levels| (0..levels).fold(Deep(None), |inner, _| Deep(Some(vec![inner])));
        let written = to_obj(&deep(DEPTH_MAX - 1)).unwrap();
        let bytes = prost::Message::encode_to_vec(&written);
        assert_eq!(<Obj as prost::Message>::decode(&bytes[..]).unwrap(), written);
        assert!(to_obj(&deep(DEPTH_MAX + 1)).unwrap_err().to_string().contains("30"));
    }
}
