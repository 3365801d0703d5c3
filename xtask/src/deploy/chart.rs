//! The chart as it is written: what is rendered is that of today, and every value is described.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::text;
use super::yaml::documents;
use crate::cargo::root;
use crate::dist::chart::FOLDER;

/// Every file below a folder, relative to it.
fn files(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            files(&entry.path(), &format!("{path}/"), found);
        } else {
            found.insert(path);
        }
    }
}

/// As `check_chart.py` makes it.
fn hash_of_chart() -> String {
    let folder = root().join(FOLDER);
    let mut paths = BTreeSet::new();
    files(&folder, "", &mut paths);
    let mut hash = Sha256::new();
    for path in paths {
        hash.update(path.as_bytes());
        hash.update([0]);
        hash.update(fs::read(folder.join(&path)).unwrap());
        hash.update([0]);
    }
    format!("{:x}", hash.finalize())
}

#[test]
fn what_is_rendered_is_the_chart_of_today() {
    let expected = format!("# chart {}", hash_of_chart());
    for name in ["default", "joining", "protected"] {
        let rendered = text(&format!("kubernetes/rendered/{name}.yaml"));
        assert_eq!(
            rendered.lines().next(),
            Some(expected.as_str()),
            "the chart was changed; to render it: python deploy/kubernetes/check_chart.py --write"
        );
    }
}

#[test]
fn every_value_is_described_and_every_description_has_a_value() {
    let [values] = documents(&text("kubernetes/tripod/values.yaml")).try_into().expect("one document");
    let schema: Value = serde_json::from_str(&text("kubernetes/tripod/values.schema.json")).unwrap();
    described("", &values, &schema);
}

fn described(path: &str, values: &Value, schema: &Value) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let keys: BTreeSet<_> = values.as_object().unwrap_or_else(|| panic!("{path} is no map")).keys().collect();
    assert_eq!(keys, properties.keys().collect::<BTreeSet<_>>(), "below `{path}`");
    assert_eq!(schema["additionalProperties"], false, "below `{path}` a misspelt value would be taken");
    for (key, schema) in properties {
        described(&format!("{path}.{key}"), &values[key], schema);
    }
}

#[test]
fn the_chart_installs_the_version_of_the_program() {
    let [chart] = documents(&text("kubernetes/tripod/Chart.yaml")).try_into().expect("one document");
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    assert_eq!((&chart["apiVersion"], &chart["name"]), (&Value::from("v2"), &Value::from("tripod")));
}
