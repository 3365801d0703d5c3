//! YAML as JSON, in which `<<` takes in the keys of what it names.

use serde_json::{Map, Value};
use yaml_rust2::{Yaml, YamlLoader};

/// The documents of a text.
pub(super) fn documents(text: &str) -> Vec<Value> {
    let documents = YamlLoader::load_from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    documents.iter().map(json).filter(|value| !value.is_null()).collect()
}

fn json(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::Real(text) => text.parse::<f64>().expect("a number").into(),
        Yaml::Integer(number) => (*number).into(),
        Yaml::String(text) => text.as_str().into(),
        Yaml::Boolean(yes) => (*yes).into(),
        Yaml::Array(items) => items.iter().map(json).collect(),
        Yaml::Hash(items) => {
            let mut map = Map::new();
            for (key, value) in items {
                let key = key.as_str().expect("a key is a text");
                if key == "<<" {
                    for (key, value) in json(value).as_object().expect("a map is taken in") {
                        map.entry(key.clone()).or_insert_with(|| value.clone());
                    }
                } else {
                    map.insert(key.to_owned(), json(value));
                }
            }
            map.into()
        }
        Yaml::Null => Value::Null,
        Yaml::Alias(_) | Yaml::BadValue => panic!("{yaml:?} stands for nothing"),
    }
}

#[test]
fn what_is_named_is_taken_in_and_own_keys_win() {
    let text = "x: &x {a: 1, b: two}\ny:\n  <<: *x\n  b: 3\n---\n- true\n";
    let [first, second] = documents(text).try_into().expect("two documents");
    assert_eq!(first["y"], serde_json::json!({"a": 1, "b": 3}));
    assert_eq!(second, serde_json::json!([true]));
}
