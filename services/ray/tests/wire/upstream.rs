//! The table of upstream's tests: every test that it names exists.

use std::collections::BTreeSet;
use std::path::Path;

/// The tests that a row names, each with the file before it.
fn named(row: &str) -> Vec<(&str, &str)> {
    let mut file = "";
    let mut tests = Vec::new();
    for quoted in row.split('`').skip(1).step_by(2) {
        if quoted.contains('/') {
            file = quoted;
        } else if quoted.contains('_') {
            tests.push((file, quoted));
        }
    }
    tests
}

#[test]
fn every_test_of_the_table_exists() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = crate_folder.ancestors().nth(2).expect("the workspace");
    let table = std::fs::read_to_string(crate_folder.join("tests/UPSTREAM.md")).expect("a table");
    let rows: Vec<_> = table.lines().filter_map(|line| line.strip_prefix("| U")?.split_once(" | ")).collect();
    let numbers: BTreeSet<u32> =
        rows.iter().map(|(number, _)| number.parse().expect("a row's number")).collect();
    assert!(numbers.into_iter().eq(1..=28), "a row for each of them");
    for (row, text) in rows {
        for (file, test) in named(text) {
            let source = std::fs::read_to_string(root.join(file));
            let source = source.unwrap_or_else(|error| panic!("U{row}: `{file}`: {error}"));
            let has = |word: &str| source.contains(&format!("{word} {test}("));
            assert!(has("fn") || has("def"), "U{row}: {file} has no test {test}");
        }
    }
}
