//! Facts in words, a line of dashes, and what is said of them. `UPDATE_EXPECT=1` writes what is said now.

mod words;

use std::fs;
use std::path::Path;

use tripod_sight::{Code, diagnose};

use crate::words::facts;

#[test]
fn what_is_found_is_said_as_these_files_have_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut files: Vec<_> =
        fs::read_dir(&folder).expect("readable").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(files.len() >= 20, "{}", files.len());
    for file in files {
        let text = fs::read_to_string(&file).expect("UTF-8");
        let (given, _) = text.split_once("---\n").expect("a line of dashes");
        let facts = facts(given);
        let found = diagnose(&facts);
        let json = found.to_json();
        assert!(json.len() < 200_000 && !json.contains('\n'), "{}", json.len());
        let said = format!("{given}---\n{}\n", found.render(false));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&file, &said).expect("writable");
            continue;
        }
        assert_eq!(text, said, "{}; UPDATE_EXPECT=1 writes it", file.display());
    }
}

#[test]
fn every_code_has_a_transcript() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let texts: Vec<String> = fs::read_dir(&folder)
        .expect("readable")
        .map(|entry| fs::read_to_string(entry.expect("an entry").path()).expect("UTF-8"))
        .collect();
    for code in Code::ALL {
        let first = format!("---\n{}: ", code.name());
        assert!(texts.iter().any(|text| text.contains(&first)), "{first}");
    }
}
