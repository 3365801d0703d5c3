//! Frames: what is known of what is watched, by field, and what has changed since the frame before.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use crate::ui::letters;

/// Everything that is shown of one thing, by field. A field that is not there is not known.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Shown {
    pub(crate) fields: BTreeMap<&'static str, Value>,
    /// One for each task, see `letters`.
    pub(crate) states: Vec<u8>,
    pub(crate) beats: Vec<u8>,
}

/// A frame as every viewer gets it.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) number: u64,
    /// An event as it is sent.
    pub(crate) event: Bytes,
}

/// The last frame, for whoever comes next.
#[derive(Debug, Default)]
pub(crate) struct Latest {
    number: u64,
    shown: Shown,
    /// Made when somebody wants it.
    whole: Option<Bytes>,
}

type Rows<'a> = (usize, Vec<(usize, &'a Value)>);

#[derive(Serialize)]
struct Wire<'a> {
    /// Numbers of frames ascend by one; a frame that is not whole counts only behind the one before.
    number: u64,
    whole: bool,
    fields: BTreeMap<&'static str, &'a Value>,
    /// Of lists of which little has changed: how long they are now, and what stands at places where something else stood.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    rows: BTreeMap<&'static str, Rows<'a>>,
    /// Fields that are not known any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    states: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    beats: Option<Value>,
}

impl Shown {
    /// All of it as one object.
    pub(crate) fn into_json(self) -> Value {
        let mut all = self.fields;
        if !self.states.is_empty() {
            all.insert("states", letters::encode(&self.states).into());
        }
        if !self.beats.is_empty() {
            all.insert("beats", letters::encode(&self.beats).into());
        }
        json!(all)
    }
}

impl Latest {
    pub(crate) fn shown(&self) -> &Shown {
        &self.shown
    }

    /// The whole of it, as an event, and its number.
    pub(crate) fn whole(&mut self) -> (u64, Bytes) {
        let event = self.whole.get_or_insert_with(|| {
            let known = !self.shown.states.is_empty();
            event(&Wire {
                number: self.number,
                whole: true,
                fields: self.shown.fields.iter().map(|(name, value)| (*name, value)).collect(),
                rows: BTreeMap::new(),
                gone: Vec::new(),
                states: known.then(|| letters::encode(&self.shown.states).into()),
                beats: (!self.shown.beats.is_empty()).then(|| letters::encode(&self.shown.beats).into()),
            })
        });
        (self.number, event.clone())
    }

    /// The next frame, with what differs from the last one. Fields of these names that nobody has looked at again stay.
    pub(crate) fn follow(&mut self, mut shown: Shown, kept: &[&'static str]) -> Arc<Frame> {
        let unseen = kept.iter().filter(|name| !shown.fields.contains_key(*name));
        let mut still: BTreeMap<_, _> =
            unseen.filter_map(|name| Some((*name, self.shown.fields.remove(name)?))).collect();
        let old = &self.shown;
        let (mut fields, mut rows) = (BTreeMap::new(), BTreeMap::new());
        for (name, value) in &shown.fields {
            let before = old.fields.get(name);
            if before == Some(value) {
                continue;
            }
            match before.and_then(|before| changed_rows(before, value)) {
                Some(changed) => _ = rows.insert(*name, changed),
                None => _ = fields.insert(*name, value),
            }
        }
        let event = event(&Wire {
            number: self.number + 1,
            whole: false,
            fields,
            rows,
            gone: old.fields.keys().filter(|name| !shown.fields.contains_key(*name)).copied().collect(),
            states: changed_letters(&old.states, &shown.states),
            beats: changed_letters(&old.beats, &shown.beats),
        });
        shown.fields.append(&mut still);
        *self = Self { number: self.number + 1, shown, whole: None };
        Arc::new(Frame { number: self.number, event })
    }

    /// The next frame, in which nothing differs but this field.
    pub(crate) fn again(&mut self, name: &'static str, value: Value) -> Arc<Frame> {
        let old = self.shown.fields.get(name);
        let event = event(&Wire {
            number: self.number + 1,
            whole: false,
            fields: (old != Some(&value)).then_some((name, &value)).into_iter().collect(),
            rows: BTreeMap::new(),
            gone: Vec::new(),
            states: None,
            beats: None,
        });
        self.shown.fields.insert(name, value);
        (self.number, self.whole) = (self.number + 1, None);
        Arc::new(Frame { number: self.number, event })
    }
}

/// What of a list has changed, unless that is more than half of it.
fn changed_rows<'a>(old: &Value, new: &'a Value) -> Option<Rows<'a>> {
    let (Value::Array(old), Value::Array(new)) = (old, new) else { return None };
    let rows: Vec<_> = new.iter().enumerate().filter(|(place, row)| old.get(*place) != Some(*row)).collect();
    (rows.len() * 2 <= new.len()).then_some((new.len(), rows))
}

fn changed_letters(old: &[u8], new: &[u8]) -> Option<Value> {
    if old == new {
        return None;
    }
    Some(match letters::patch(old, new) {
        Some(runs) => json!(runs),
        None => letters::encode(new).into(),
    })
}

fn event(wire: &Wire<'_>) -> Bytes {
    // JSON has no line break of its own, so one line is one event.
    let json = serde_json::to_string(wire).expect("it has texts for keys");
    Bytes::from(format!("data: {json}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(event: &Bytes) -> Value {
        let text = std::str::from_utf8(event).expect("UTF-8");
        let json = text.strip_prefix("data: ").and_then(|text| text.strip_suffix("\n\n")).expect("an event");
        assert!(!json.contains('\n'), "{json}");
        serde_json::from_str(json).expect("JSON")
    }

    fn shown(fields: &[(&'static str, i64)], states: &[u8]) -> Shown {
        let fields = fields.iter().map(|(name, value)| (*name, (*value).into())).collect();
        Shown { fields, states: states.to_vec(), beats: Vec::new() }
    }

    #[test]
    fn a_frame_has_what_changed_and_the_whole_one_has_all() {
        let mut latest = Latest::default();
        let first = latest.follow(shown(&[("a", 1), ("b", 1)], b"ccc"), &[]);
        let expected = json!({"number": 1, "whole": false, "fields": {"a": 1, "b": 1}, "states": "c3"});
        assert_eq!((first.number, read(&first.event)), (1, expected));
        let second = latest.follow(shown(&[("a", 2), ("c", 1)], b"ccc"), &[]);
        let expected = json!({"number": 2, "whole": false, "fields": {"a": 2, "c": 1}, "gone": ["b"]});
        assert_eq!(read(&second.event), expected);
        let expected = json!({"number": 2, "whole": true, "fields": {"a": 2, "c": 1}, "states": "c3"});
        let (number, whole) = latest.whole();
        assert_eq!((number, read(&whole)), (2, expected));
        assert_eq!(latest.whole().1, whole, "it is made once");
    }

    #[test]
    fn of_a_list_only_the_rows_go_that_have_changed_and_one_that_nobody_saw_stays() {
        let list = |rows: &[u32]| Shown { fields: [("rows", json!(rows))].into(), ..Shown::default() };
        let mut latest = Latest::default();
        latest.follow(list(&[1, 2, 3, 4]), &[]);
        let frame = latest.follow(list(&[1, 9, 3, 4]), &["rows"]);
        let expected = json!({"number": 2, "whole": false, "fields": {}, "rows": {"rows": [4, [[1, 9]]]}});
        assert_eq!(read(&frame.event), expected);
        let frame = latest.follow(shown(&[("a", 1)], b""), &["rows"]);
        assert_eq!(read(&frame.event), json!({"number": 3, "whole": false, "fields": {"a": 1}}));
        assert_eq!(read(&latest.whole().1)["fields"], json!({"a": 1, "rows": [1, 9, 3, 4]}));
        let frame = latest.follow(list(&[1, 9]), &[]);
        assert_eq!(read(&frame.event)["rows"], json!({"rows": [2, []]}));
        let frame = latest.follow(list(&[7, 8, 9]), &[]);
        assert_eq!(read(&frame.event)["fields"], json!({"rows": [7, 8, 9]}), "most of it has changed");
    }

    #[test]
    fn what_nobody_looked_at_again_is_sent_with_its_age_alone() {
        let mut latest = Latest::default();
        latest.follow(shown(&[("age", 0), ("b", 1)], b"ccc"), &[]);
        let again = latest.again("age", 7.into());
        let expected = json!({"number": 2, "whole": false, "fields": {"age": 7}});
        assert_eq!((again.number, read(&again.event)), (2, expected));
        let expected = json!({"number": 2, "whole": true, "fields": {"age": 7, "b": 1}, "states": "c3"});
        assert_eq!(read(&latest.whole().1), expected);
        let still = latest.again("age", 7.into());
        assert_eq!(read(&still.event), json!({"number": 3, "whole": false, "fields": {}}));
    }

    #[test]
    fn a_line_break_in_a_name_does_not_end_an_event() {
        let mut latest = Latest::default();
        let fields = BTreeMap::from([("note", Value::from("a\n\ndata: b"))]);
        let frame = latest.follow(Shown { fields, ..Shown::default() }, &[]);
        assert_eq!(read(&frame.event)["fields"]["note"], "a\n\ndata: b");
    }
}
