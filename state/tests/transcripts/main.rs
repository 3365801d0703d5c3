//! Runs the transcripts beside this file: blocks of commands, a line of dashes, and what the state
//! machine said. `UPDATE_EXPECT=1` writes what it says now; review the difference.

mod cluster;
mod commands;
mod events;
mod mars;
mod mindspore;
mod ray;
mod script;
mod show;
mod token;
mod world;

use std::path::{Path, PathBuf};

use world::World;

const DASHES: &str = "----";

#[test]
fn transcripts_read_as_written() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    let files = files();
    assert!(!files.is_empty(), "the transcripts are missing");
    for file in files {
        let written = std::fs::read_to_string(&file).expect("it was just listed");
        let actual = run(&written, &file);
        if update {
            std::fs::write(&file, &actual).expect("the checkout is writable");
        } else if actual != written {
            wrong.push(difference(&file, &written, &actual));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A transcript that says something else must be noticed, or the test above proves nothing.
#[test]
fn a_wrong_transcript_is_noticed() {
    let written = "create w tasks=1\n----\nok Nonsense\n";
    assert_ne!(run(written, Path::new("wrong")), written);
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let entries = std::fs::read_dir(folder).expect("the folder is part of the crate");
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "txt")).collect();
    files.sort();
    files
}

/// The transcript with the expectations that the state machine meets.
fn run(written: &str, file: &Path) -> String {
    let mut world = World::default();
    let mut actual = String::new();
    let mut expecting = false;
    let mut said = String::new();
    for (number, line) in written.lines().enumerate() {
        if line == DASHES {
            expecting = true;
            actual.push_str(DASHES);
            actual.push('\n');
            actual.push_str(&std::mem::take(&mut said));
        } else if line.is_empty() {
            expecting = false;
            actual.push('\n');
        } else if !expecting {
            actual.push_str(line);
            actual.push('\n');
            if !line.starts_with('#') {
                let place = format!("{}:{}", file.display(), number + 1);
                said.push_str(&world.step(line, &place));
            }
        }
    }
    assert!(said.is_empty(), "{}: the last block has no expectation", file.display());
    actual
}

fn difference(file: &Path, written: &str, actual: &str) -> String {
    let at = written.lines().zip(actual.lines()).position(|(a, b)| a != b);
    let line = at.unwrap_or_else(|| written.lines().count().min(actual.lines().count()));
    let show = |text: &str| text.lines().nth(line).unwrap_or("(end)").to_owned();
    format!("{}:{}\n  written: {}\n  actual:  {}", file.display(), line + 1, show(written), show(actual))
}
