//! The list in `README.md` and the tests name each other.

mod sources;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use table::{Row, Shown, parse};

const LIST: &str = include_str!("README.md");
/// How many tests upstream's suites have, by the beginning of their headings.
const SIZES: [(&str, usize); 9] = [
    ("A. ", 80),
    ("B. ", 36),
    ("C. ", 25),
    ("D. ", 32),
    ("E. `client_server_test`", 30),
    ("E. `topology_util_test`", 12),
    ("E. `preemption_sync_manager_test`", 10),
    ("E2. ", 13),
    ("G. ", 16),
];
/// What is not one of upstream's tests has a name of its own.
const OURS: &str = "H. ";
/// Fewer words do not say why a test does not apply.
const REASON_WORDS_MIN: usize = 4;

fn rows() -> Vec<Row> {
    parse(LIST).expect("a list that can be read")
}

/// `ConnectAfterReset_WithErrorPolling` is `connect_after_reset_with_error_polling`.
fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && text.chars().next_back().is_some_and(char::is_alphanumeric) {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// What is wrong with a row, given the tests that there are.
fn faults(row: &Row, tests: &BTreeSet<String>) -> Vec<String> {
    let mut faults = Vec::new();
    let named = |test: &str| test.rsplit("::").next() == Some(&snake_case(&row.name));
    for shown in &row.shown {
        match shown {
            Shown::Here(test) if !tests.contains(test) => faults.push(format!("there is no test {test}")),
            Shown::Here(test) if !row.suite.starts_with(OURS) && !named(test) => {
                faults.push(format!("{test} has not the row's name"));
            }
            Shown::Elsewhere { file, name } if !sources::has(file, name) => {
                faults.push(format!("{file} has no {name}"));
            }
            Shown::NotApplicable(reason) if reason.split_whitespace().count() < REASON_WORDS_MIN => {
                faults.push(format!("`{reason}` does not say why"));
            }
            Shown::Here(_) | Shown::Elsewhere { .. } | Shown::NotApplicable(_) => {}
        }
    }
    faults
}

/// The tests that no row names.
fn unlisted(rows: &[Row], tests: &BTreeSet<String>) -> Vec<String> {
    let names = |test: &str| {
        let mut shown = rows.iter().flat_map(|row| &row.shown);
        shown.any(|shown| matches!(shown, Shown::Here(listed) if listed == test))
    };
    tests.iter().filter(|test| !names(test)).cloned().collect()
}

#[test]
fn every_row_has_a_test_or_a_reason() {
    let tests = sources::tests();
    let faults = |row: &Row| {
        let faults = faults(row, &tests).into_iter();
        faults.map(|fault| format!("{}: {}: {fault}", row.suite, row.name)).collect::<Vec<_>>()
    };
    let faults: Vec<String> = rows().iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_test_has_a_row() {
    let unlisted = unlisted(&rows(), &sources::tests());
    assert!(unlisted.is_empty(), "README.md has no row for {}", unlisted.join(", "));
}

#[test]
fn the_list_has_as_many_rows_as_upstream_has_tests() {
    let rows = rows();
    for (suite, size) in SIZES {
        let of_suite: Vec<&Row> = rows.iter().filter(|row| row.suite.starts_with(suite)).collect();
        assert_eq!(of_suite.len(), size, "{suite}");
        let names: BTreeSet<&str> = of_suite.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.len(), size, "{suite} names a test twice");
    }
}

#[test]
fn no_test_stands_for_two_rows_of_upstreams() {
    let mut stands: BTreeMap<String, u32> = BTreeMap::new();
    for row in rows() {
        for shown in row.shown {
            if let Shown::Here(test) = shown {
                *stands.entry(test).or_default() += 1;
            }
        }
    }
    stands.retain(|_, times| *times > 1);
    assert!(stands.is_empty(), "{stands:?}");
}

#[test]
fn what_is_wrong_with_a_row_is_found() {
    let tests = BTreeSet::from(["a::get_key".to_owned(), "a::other".to_owned()]);
    let wrong = |cell: &str| {
        let rows = parse(&format!("## A. suite\n\n| upstream | here |\n|---|---|\n| `GetKey` | {cell} |\n"));
        faults(&rows.expect("a row")[0], &tests)
    };
    assert_eq!(wrong("`a::get_key`"), [""; 0]);
    assert_eq!(wrong("`b::get_key`"), ["there is no test b::get_key"]);
    assert_eq!(wrong("`a::other`"), ["a::other has not the row's name"]);
    assert_eq!(wrong("`README.md`: `nothing of this name`"), ["README.md has no nothing of this name"]);
    assert_eq!(wrong("not applicable: later"), ["`later` does not say why"]);
    for unreadable in ["| `GetKey` |", "| `GetKey` | later |", "| GetKey | `a::get_key` |", "| `GetKey` |  |"]
    {
        parse(unreadable).expect_err(unreadable);
    }
}

#[test]
fn a_test_without_a_row_is_found() {
    let rows = parse("| `GetKey` | `a::get_key` |").expect("a row");
    let source = "#[tokio::test(start_paused = true)]\nasync fn get_key() {\n    #[test]\n    #[ignore]\n    fn other(\n";
    let tests: BTreeSet<String> = sources::tests_of(source).map(|test| format!("a::{test}")).collect();
    assert_eq!(unlisted(&rows, &tests), ["a::other"]);
}

#[test]
fn names_are_turned_as_tests_are_named() {
    assert_eq!(
        snake_case("RegisterTask_AlreadyConnected_Succeeds"),
        "register_task_already_connected_succeeds"
    );
    assert_eq!(snake_case("ListClusterDevices_TfDevice"), "list_cluster_devices_tf_device");
    assert_eq!(snake_case("Barrier"), "barrier");
}
