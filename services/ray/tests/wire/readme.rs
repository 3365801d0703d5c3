//! The table of calls in the README, by the descriptors.

use prost::Message as _;
use prost_types::FileDescriptorSet;

/// The services that a node serves.
const SERVED: [&str; 5] =
    ["Scheduler", "ObjStore", "tripod.v1.Ray", "tripod.v1.RayLine", "tripod.v1.Membership"];

/// Every call of these services, as `Service/Method`.
pub(crate) fn calls() -> Vec<String> {
    let files = FileDescriptorSet::decode(tripod_proto::DESCRIPTORS).expect("descriptors").file;
    let mut calls = Vec::new();
    for file in &files {
        for service in &file.service {
            let name = match file.package() {
                "" => service.name().to_owned(),
                package => format!("{package}.{}", service.name()),
            };
            if SERVED.contains(&name.as_str()) {
                calls.extend(service.method.iter().map(|method| format!("{name}/{}", method.name())));
            }
        }
    }
    assert!(calls.len() >= 30, "the descriptors have the services: {calls:?}");
    calls
}

#[test]
fn the_readme_has_every_call() {
    let readme =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).expect("a README");
    let rows: Vec<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|row| row.0)
        .collect();
    for call in calls() {
        assert!(rows.contains(&call.as_str()), "README.md has no row for {call}");
    }
    let of_services =
        rows.iter().filter(|row| SERVED.iter().any(|service| row.starts_with(&format!("{service}/"))));
    for row in of_services {
        assert!(calls().iter().any(|call| call == row), "README.md has a row for {row}, which is no call");
    }
}

/// The words in backticks of one line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn every_row_has_its_tests_and_they_exist() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = std::fs::read_to_string(here.join("tests/README.md")).expect("a README of the tests");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ") && line.contains('`')).collect();
    let ids = (1..=25).map(|row| format!("| R{row} |")).chain((1..=28).map(|row| format!("| F{row} |")));
    for id in ids {
        assert!(rows.iter().any(|row| row.starts_with(&id)), "tests/README.md has no row {id}");
    }
    for row in rows {
        let (mut text, mut tests) = (String::new(), 0);
        for word in quoted(row) {
            if word.ends_with(".rs") {
                let path = here.join("../..").join(word);
                text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{word}: {error}"));
            } else {
                assert!(text.contains(&format!("fn {word}(")), "{row} names {word}, which is no test there");
                tests += 1;
            }
        }
        assert!(tests > 0, "{row} names no test");
    }
}
