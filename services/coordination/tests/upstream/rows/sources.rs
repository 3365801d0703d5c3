//! The tests that this suite has, and what the project's other files have, by their texts.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The root of the project.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every test of the suite's modules but `rows`, as `module::test`.
pub(super) fn tests() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/upstream");
    let mut tests = BTreeSet::new();
    collect(&folder, "", &mut tests);
    tests.into_iter().filter(|test| !test.starts_with("rows::")).collect()
}

fn collect(folder: &Path, module: &str, tests: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder of the suite") {
        let path = entry.expect("a name").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name of plain letters");
        let inner = if module.is_empty() { stem.to_owned() } else { format!("{module}::{stem}") };
        if path.is_dir() {
            collect(&path, &inner, tests);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            tests.extend(tests_of(&text).map(|test| format!("{inner}::{test}")));
        }
    }
}

/// The names of the tests in a source.
pub(super) fn tests_of(text: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let marks = lines.iter().enumerate().filter(|(_, line)| is_mark(line)).map(|(place, _)| place);
    let after: Vec<&str> =
        marks.filter_map(|place| lines[place..].iter().find_map(|line| name(line))).collect();
    after.into_iter()
}

fn is_mark(line: &str) -> bool {
    line.starts_with("#[test]") || line.starts_with("#[tokio::test")
}

/// The name of the function that begins in this line.
fn name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
    rest.split_once('(').map(|(name, _)| name)
}

/// Whether a file of the project has a test of that name, or, where it is no source, those words.
pub(super) fn has(file: &str, wanted: &str) -> bool {
    let Ok(text) = fs::read_to_string(root().join(file)) else { return false };
    if Path::new(file).extension().is_some_and(|extension| extension == "rs") {
        tests_of(&text).any(|test| test == wanted)
    } else {
        text.contains(&format!("`{wanted}`")) || text.contains(&format!("\"{wanted}\""))
    }
}
