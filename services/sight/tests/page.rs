//! The page for users shows what the program says of the facts of transcripts. `UPDATE_EXPECT=1` writes what is said now.

mod words;

use std::fs;
use std::path::Path;

use tripod_sight::diagnose;

use crate::words::facts;

/// Names the transcript whose output stands in the block behind it.
const BEGINS: &str = "<!-- said: ";
const BLOCK: &str = "```text\n";

#[test]
fn the_page_shows_what_is_said() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("../../docs/who-is-missing.md");
    let page = fs::read_to_string(&file).expect("UTF-8");
    let mut parts = page.split(BEGINS);
    let mut written = parts.next().expect("its beginning").to_owned();
    let mut found = 0;
    for part in parts {
        let (name, rest) = part.split_once(" -->\n").expect("the end of a comment");
        let (_, rest) = rest.strip_prefix(BLOCK).and_then(|rest| rest.split_once("```")).expect("a block");
        let given = fs::read_to_string(root.join(format!("tests/transcripts/{name}.txt"))).expect(name);
        let facts = facts(given.split("---\n").next().expect("facts"));
        let said = diagnose(&facts).render(false);
        let said: String = said.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        written.push_str(&format!("{BEGINS}{name} -->\n{BLOCK}{said}```{rest}"));
        found += 1;
    }
    assert!(found >= 10, "{found}");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&file, &written).expect("writable");
        return;
    }
    assert!(page == written, "{} is another; UPDATE_EXPECT=1 writes it", file.display());
}
