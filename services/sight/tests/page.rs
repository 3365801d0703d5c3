//! The page for users shows what the program says.

use std::fs;
use std::path::Path;

/// Lines of the page are wrapped nowhere, and have no blanks at their ends.
#[test]
fn the_page_shows_what_is_said() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../docs/who-is-missing.md")).expect("UTF-8");
    let mut said = vec!["tolerance 1 node   change of members: safe\n".to_owned()];
    for entry in fs::read_dir(root.join("tests/transcripts")).expect("readable") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("UTF-8");
        let (_, text) = text.split_once("---\n").expect("a line of dashes");
        said.push(text.lines().map(|line| format!("{}\n", line.trim_end())).collect());
    }
    let blocks: Vec<&str> =
        page.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() > 10, "{}", blocks.len());
    for block in blocks {
        assert!(said.iter().any(|said| said == block), "no transcript says\n{block}");
    }
}
