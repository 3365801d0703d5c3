//! CONTRIBUTING says what a protocol costs, and the smallest one costs that.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The title of the page's table, and what ends its first part.
const SECTION: &str = "## Add a protocol";
const SERVED: &str = "And if nodes serve it:";

/// Files outside this crate that name it, but for what cargo writes.
fn naming(folder: &Path, root: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            let left_out = name.starts_with('.') || name == "target" || path == root.join("tests/echo");
            if !left_out {
                naming(&path, root, found);
            }
        } else if [".rs", ".toml", ".md"].iter().any(|ending| name.ends_with(ending)) {
            let text = fs::read_to_string(&path).unwrap_or_default();
            if ["tripod-echo", "tripod_echo", "tests/echo"].iter().any(|word| text.contains(word)) {
                found.insert(path.strip_prefix(root).unwrap().display().to_string());
            }
        }
    }
}

#[test]
fn the_smallest_protocol_is_named_in_the_places_of_the_page_and_no_others() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let page = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let (_, section) = page.split_once(SECTION).unwrap();
    let (always, _) = section.split_once(SERVED).unwrap();
    let rows = always.lines().filter_map(|line| line.strip_prefix("| `"));
    let told: BTreeSet<String> = rows.map(|row| row.split('`').next().unwrap().to_owned()).collect();
    assert!(told.len() > 2, "the table is not read: {told:?}");

    let mut named = BTreeSet::new();
    naming(&root, &root, &mut named);
    // Pages that tell why, or how to begin, are no places of wiring.
    named.retain(|file| !file.starts_with("docs/") && file != "CONTRIBUTING.md");
    assert_eq!(named, told);
}
