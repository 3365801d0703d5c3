//! Values of 2016, as far as a scheduler must look into them: the ids of objects inside.

use std::collections::VecDeque;

use tripod_proto::ray as pb;
use tripod_state::ray::ids::ObjectId;

/// The ids inside a value, once per occurrence, level by level. Needs no stack, however deep the value is.
pub(crate) fn nested(value: &pb::Obj) -> Vec<ObjectId> {
    let mut found = Vec::new();
    let mut ahead = VecDeque::from([value]);
    while let Some(value) = ahead.pop_front() {
        found.extend(value.objectid_data.iter().map(|id| ObjectId(id.data)));
        if let Some(array) = &value.array_data {
            found.extend(array.objectid_data.iter().copied().map(ObjectId));
        }
        if let Some(list) = &value.list_data {
            ahead.extend(&list.elem);
        }
        if let Some(tuple) = &value.tuple_data {
            ahead.extend(&tuple.elem);
        }
        if let Some(dict) = &value.dict_data {
            ahead.extend(dict.elem.iter().flat_map(|entry| entry.key.iter().chain(&entry.value)));
        }
    }
    found
}

/// A text as clients of 2016 wrote one.
pub(crate) fn text(text: &str) -> pb::Obj {
    let data = text.as_bytes().to_vec().into();
    pb::Obj { string_data: Some(pb::String { data }), ..Default::default() }
}

/// Texts in a row.
pub(crate) fn texts<'a>(all: impl IntoIterator<Item = &'a str>) -> pb::Obj {
    let elem = all.into_iter().map(text).collect();
    pb::Obj { list_data: Some(pb::List { elem }), ..Default::default() }
}

/// Values by name.
pub(crate) fn dict(entries: impl IntoIterator<Item = (&'static str, pb::Obj)>) -> pb::Obj {
    let entry = |(key, value)| pb::DictEntry { key: Some(text(key)), value: Some(value) };
    let elem = entries.into_iter().map(entry).collect();
    pb::Obj { dict_data: Some(pb::Dict { elem }), ..Default::default() }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn id(id: u64) -> pb::Obj {
        pb::Obj { objectid_data: Some(pb::ObjId { data: id }), ..Default::default() }
    }

    fn list(elem: Vec<pb::Obj>) -> pb::Obj {
        pb::Obj { list_data: Some(pb::List { elem }), ..Default::default() }
    }

    fn tuple(elem: Vec<pb::Obj>) -> pb::Obj {
        pb::Obj { tuple_data: Some(pb::Tuple { elem }), ..Default::default() }
    }

    fn array(ids: Vec<u64>) -> pb::Obj {
        let array = pb::Array { objectid_data: ids, ..Default::default() };
        pb::Obj { array_data: Some(array), ..Default::default() }
    }

    #[test]
    fn ids_are_found_in_every_kind_of_value() {
        let entry = pb::DictEntry { key: Some(id(5)), value: Some(tuple(vec![id(6), text("x")])) };
        let dict = pb::Obj { dict_data: Some(pb::Dict { elem: vec![entry] }), ..Default::default() };
        let value = list(vec![id(0), array(vec![3, 3]), dict, list(vec![list(vec![id(0)])])]);
        let mut found: Vec<u64> = nested(&value).into_iter().map(|id| id.0).collect();
        found.sort_unstable();
        assert_eq!(found, [0, 0, 3, 3, 5, 6]);
        assert!(nested(&pb::Obj::default()).is_empty());
    }

    #[test]
    fn a_value_of_any_depth_is_scanned() {
        let mut value = id(7);
        for _ in 0..20_000 {
            value = list(vec![value]);
        }
        assert_eq!(nested(&value), [ObjectId(7)]);
        // Dropping it recurses in generated code, which decoded values cannot: their depth is bounded.
        std::mem::forget(value);
    }
}
