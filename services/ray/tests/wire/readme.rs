//! The table of calls in the README, by the descriptors.

use prost::Message as _;
use prost_types::FileDescriptorSet;

/// The services that a node serves.
const SERVED: [&str; 4] = ["Scheduler", "ObjStore", "tripod.v1.Ray", "tripod.v1.Membership"];

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
    assert!(calls.len() >= 29, "the descriptors have the services: {calls:?}");
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
