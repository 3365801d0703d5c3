//! The tables of calls: that of the README by the descriptors, and that of how calls may end. And which test shows what.

use std::path::Path;

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

/// Tests of Mars that have a row.
const ROWS: [&str; 48] = [
    "testApi",
    "testGetTensorNsplits",
    "testWebApi",
    "testWebApiException",
    "testSimpleGraphPreparation",
    "testSplitPreparation",
    "testSameKey",
    "testShuffle",
    "testFuse",
    "testMultipleAdd",
    "testGraphTermination",
    "testEmptyGraph",
    "testErrorOnPrepare",
    "test_worker_failover",
    "testLocalCluster",
    "testGraphFail",
    "testIterativeDependency",
    "testMultiSessionDecref",
    "test_session_service",
    "test_get_last_idle_time",
    "test_task_execution",
    "test_task_error",
    "test_task_cancel",
    "test_task_timeout_execution",
    "test_task_progress",
    "test_task_tile_progress",
    "test_get_tileable_graph",
    "test_run_tasks_with_same_name",
    "test_iterative_tiling",
    "test_prune_in_iterative_tiling",
    "test_shuffle",
    "test_optimization",
    "test_meta_mock_api",
    "test_mutable_tensor_timestamp",
    "test_assign_cpu_tasks",
    "test_reassign_subtasks",
    "test_tracker",
    "test_spill",
    "test_get_tileable_details",
    "test_get_tileable_subtasks",
    "test_meta_web_api",
    "test_worker_meta_api",
    "test_mutable_tensor",
    "test_assign_broadcaster",
    "test_storage_service",
    "test_transfer",
    "test_api",
    "test_web_api",
];

/// Whether a file has a test of that name: a function, or a block of a transcript that begins so.
fn has(path: &str, text: &str, test: &str) -> bool {
    let line = match path.rsplit_once('.') {
        Some((_, "rs")) => return text.contains(&format!("fn {test}(")),
        Some((_, "py")) => return text.contains(&format!("def {test}(")),
        _ => format!("# {test}"),
    };
    text.lines().any(|known| known == line)
}

#[test]
fn every_row_of_the_tests_has_its_tests_or_says_why_not_and_they_exist() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = std::fs::read_to_string(here.join("tests/README.md")).expect("a README of the tests");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| row |"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    for wanted in ROWS {
        let names = |row: &Vec<&str>| row[0].split([' ', ',']).any(|name| name == wanted);
        assert!(rows.iter().any(names), "tests/README.md has no row {wanted}");
    }
    for row in rows {
        let (mut path, mut text, mut tests) = ("", String::new(), 0);
        for word in row.get(2).copied().unwrap_or("").split('`').skip(1).step_by(2) {
            if word.contains('/') && [".rs", ".py", ".txt"].iter().any(|end| word.ends_with(end)) {
                path = word;
                text = std::fs::read_to_string(here.join("../..").join(word))
                    .unwrap_or_else(|error| panic!("{word}: {error}"));
            } else {
                assert!(has(path, &text, word), "{path} has no test {word}, which {} names", row[0]);
                tests += 1;
            }
        }
        let is_none = ["not built: ", "does not apply: "].iter().any(|why| row[1].starts_with(why));
        assert_eq!(tests == 0, is_none, "{} names no test and no reason, or both", row[0]);
    }
}
