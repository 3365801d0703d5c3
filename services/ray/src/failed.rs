//! Why an object cannot be had, as a value in its place.

use prost::Message as _;
use tripod_state::ray::view::Failure;

use crate::{status, values};

/// The serialised value that stands for a failed object: a dict, because a pickled exception cannot be written
/// without Python. The README has its entries.
pub(crate) fn value(failure: &Failure) -> Vec<u8> {
    let function = failure.function.as_ref().map(ToString::to_string).unwrap_or_default();
    let entries = [
        ("tripod.error", values::text(&status::reason_word(failure.reason))),
        ("function", values::text(&function)),
        ("text", values::text(&status::reason_text(failure.reason))),
        ("history", values::texts(failure.endings().iter().map(String::as_str))),
    ];
    values::dict(entries).encode_to_vec()
}

#[cfg(test)]
mod tests {
    use tripod_proto::ray as pb;
    use tripod_state::ray::ids::{FunctionName, ObjectId};
    use tripod_state::ray::view::Reason;

    use super::*;

    #[test]
    fn a_failure_is_a_dict_that_names_its_reason_first() {
        let failure = Failure {
            reason: Reason::DependencyFailed(ObjectId(4)),
            function: Some(FunctionName("m.f".into())),
            // It had been given out and given back before.
            history: vec!["attempt 3: worker 1 died".to_owned()],
        };
        let value = pb::Obj::decode(value(&failure).as_slice()).unwrap();
        let entries = value.dict_data.unwrap().elem;
        let key = |place: usize| entries[place].key.clone().unwrap().string_data.unwrap().data;
        let text = |place: usize| entries[place].value.clone().unwrap().string_data.unwrap().data;
        assert_eq!((key(0), text(0)), ("tripod.error".into(), "DEPENDENCY_FAILED(4)".into()));
        assert_eq!((key(1), text(1)), ("function".into(), "m.f".into()));
        assert_eq!((key(2), key(3)), ("text".into(), "history".into()));
        let history = entries[3].value.clone().unwrap().list_data.unwrap();
        assert_eq!(history.elem[0].string_data.clone().unwrap().data, "attempt 1: worker 1 died");
    }
}
