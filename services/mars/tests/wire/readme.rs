//! The tables of calls: that of the README by the descriptors, and that of how calls may end.

use prost::Message as _;
use prost_types::FileDescriptorSet;
use tripod_mars::MANNERS;

const SERVED: &str = "mars.v1.Scheduler";

/// Every call of the service.
fn calls() -> Vec<String> {
    let files = FileDescriptorSet::decode(tripod_proto::DESCRIPTORS).expect("descriptors").file;
    let of_mars = files.iter().filter(|file| file.package() == "mars.v1");
    let services = of_mars.flat_map(|file| &file.service).filter(|service| service.name() == "Scheduler");
    let calls: Vec<String> =
        services.flat_map(|service| service.method.iter().map(|method| method.name().to_owned())).collect();
    assert!(calls.len() >= 28, "the descriptors have the service: {calls:?}");
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
}

#[test]
fn every_call_has_a_row_that_says_how_it_may_end() {
    let row = MANNERS.iter().find(|row| row.service == SERVED).expect("a row");
    let mut named: Vec<&str> = row.methods.iter().map(|method| method.name).collect();
    let mut calls = calls();
    named.sort_unstable();
    calls.sort_unstable();
    assert_eq!(named, calls);
}
