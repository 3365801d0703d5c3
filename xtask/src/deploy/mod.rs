//! Tests of the files in `deploy/`: what must be true of each, whatever reads it. That nodes take the flags in them is a
//! test of the program (`services/tripod/tests/runbooks/deploy.rs`).

mod chart;
mod compose;
mod image;
mod kubernetes;
mod unit;
mod yaml;

use std::fs;

use serde_json::Value;

/// A file of `deploy/`.
fn text(path: &str) -> String {
    let path = crate::cargo::root().join("deploy").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a flag of a list of arguments says: `--peer=a:1`.
fn flag<'a>(arguments: &'a Value, name: &str) -> &'a str {
    let begin = format!("--{name}=");
    let mut values = arguments
        .as_array()
        .expect("a list of arguments")
        .iter()
        .filter_map(|argument| argument.as_str().expect("an argument is a text").strip_prefix(&begin));
    let value = values.next().unwrap_or_else(|| panic!("no --{name} in {arguments}"));
    assert_eq!(values.next(), None, "--{name} is given twice");
    value
}

/// The port of an address.
fn port(address: &str) -> u64 {
    address.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or_else(|| panic!("{address}"))
}
