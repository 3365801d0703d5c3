//! The files of rules.

use serde_json::{Map, Value, json};
use yaml_rust2::{Yaml, YamlLoader};

use super::file;

pub(super) const ALERTS: &str = "deploy/prometheus/alerts.yml";
pub(super) const RECORDINGS: &str = "deploy/prometheus/recording.yml";

/// An alert, or what is recorded.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) expr: String,
    pub(super) labels: Map<String, Value>,
    pub(super) annotations: Map<String, Value>,
    /// As it stands in its file.
    pub(super) whole: Value,
}

pub(super) fn alerts() -> Vec<Rule> {
    read(ALERTS, "alert")
}

pub(super) fn recordings() -> Vec<Rule> {
    read(RECORDINGS, "record")
}

/// A file of these rules alone. JSON is YAML, too.
pub(super) fn file_of<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> Value {
    let rules: Vec<&Value> = rules.into_iter().map(|rule| &rule.whole).collect();
    json!({"groups": [{"name": "of-a-test", "rules": rules}]})
}

fn read(path: &str, kind: &str) -> Vec<Rule> {
    let text = std::fs::read_to_string(file(path)).expect("it is there");
    let documents = YamlLoader::load_from_str(&text).expect("YAML");
    let [document] = documents.as_slice() else { panic!("{path} is one document") };
    let document = of_yaml(document);
    let groups = document["groups"].as_array().expect("groups").iter();
    let rules = groups.flat_map(|group| group["rules"].as_array().expect("rules").clone());
    let rule = |whole: Value| {
        let map = |field: &str| whole[field].as_object().cloned().unwrap_or_default();
        let text = |field: &str| whole[field].as_str().expect("a text").to_owned();
        Rule {
            name: text(kind),
            expr: text("expr"),
            labels: map("labels"),
            annotations: map("annotations"),
            whole,
        }
    };
    rules.map(rule).collect()
}

fn of_yaml(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::String(text) => text.as_str().into(),
        Yaml::Array(items) => items.iter().map(of_yaml).collect(),
        Yaml::Hash(fields) => {
            let field =
                |(key, value): (&Yaml, &Yaml)| (key.as_str().expect("a name").to_owned(), of_yaml(value));
            Value::Object(fields.iter().map(field).collect())
        }
        other => panic!("{other:?} is neither a text, a list nor a map"),
    }
}
