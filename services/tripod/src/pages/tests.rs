//! Catalogue, pages, their index, the texts of all crates and the commands in the pages agree.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

use super::*;
use crate::cli::Cli;
use crate::failure::{Exit, exit};

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn walk(place: &Path, ending: &str, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(place).expect("readable") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8").to_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            walk(&path, ending, found);
        } else if name.ends_with(ending) {
            let text = fs::read_to_string(&path).expect("UTF-8");
            found.push((path, text));
        }
    }
}

/// All files of the workspace whose names end so, and their texts.
fn files(ending: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    walk(&root(), ending, &mut found);
    found
}

/// What a program runs, as far as a look at the text can tell: without tests.
fn without_tests(path: &Path, text: &str) -> Option<String> {
    let of_a_test = |part: &std::ffi::OsStr| part == "tests" || part == "tests.rs";
    let inside = path.strip_prefix(root()).expect("below the root");
    if inside.components().any(|part| of_a_test(part.as_os_str())) || inside.ends_with("proto/src/code.rs") {
        return None;
    }
    text.split("#[cfg(test)]\nmod tests {").next().map(str::to_owned)
}

/// Every `Tnnnn word` in a text, with the word, whatever it is.
fn mentions(text: &str) -> Vec<(u16, &str)> {
    let at = |at: usize| {
        let before = text[..at].chars().next_back();
        let (number, rest) = text[at + 1..].split_at_checked(4)?;
        let number = number.bytes().all(|digit| digit.is_ascii_digit()).then(|| number.parse().ok())??;
        let rest = rest.strip_prefix(' ')?;
        let word = rest.split(|c: char| !(c.is_ascii_lowercase() || c == '-')).next()?;
        let alone = !before.is_some_and(char::is_alphanumeric);
        (alone && word.contains(|c: char| c.is_ascii_lowercase())).then_some((number, word))
    };
    text.match_indices('T').filter_map(|(place, _)| at(place)).collect()
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let numbers: Vec<u16> = PAGES.iter().map(|(number, _)| *number).collect();
    let known: Vec<u16> = Code::ALL.iter().map(|code| code.number()).collect();
    assert_eq!(numbers, known, "services/tripod/src/pages.rs lists the pages of the catalogue");
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(root().join("docs/errors")).expect("there") {
        names.insert(entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    }
    let mut expected: BTreeSet<String> = known.iter().map(|number| format!("T{number}.md")).collect();
    expected.insert("README.md".to_owned());
    assert_eq!(names, expected);
}

#[test]
fn a_page_says_what_it_means_what_causes_it_how_to_check_and_how_to_mend() {
    for code in Code::ALL {
        let page = of(*code);
        assert_eq!(page.lines().next(), Some(format!("# {code}: {}", code.title()).as_str()));
        let places = ["\n## Causes\n", "\n## Check\n", "\n## Fix\n"].map(|part| page.find(part));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{code}: {places:?}");
        let last = format!("\nExit code of a command that ends with it: {}.\n", exit(*code) as u8);
        assert!(page.ends_with(&last), "{code}: {last}");
        let length = page.lines().count();
        assert!((15..=60).contains(&length), "{code}: {length} lines");
    }
}

#[test]
fn the_index_has_a_line_for_every_code() {
    let index = fs::read_to_string(root().join("docs/errors/README.md")).expect("there");
    let lines: Vec<&str> = index.lines().filter(|line| line.starts_with("| [T")).collect();
    let expected = Code::ALL.iter().map(|code| {
        let (number, exit) = (code.number(), exit(*code) as u8);
        format!("| [T{number}](T{number}.md) | `{}` | {} | {exit} |", code.slug(), code.title())
    });
    assert_eq!(lines, expected.collect::<Vec<_>>());
}

#[test]
fn a_code_that_a_text_names_is_in_the_catalogue_under_that_word() {
    let mut found = 0;
    for (path, text) in files(".rs").into_iter().chain(files(".md")) {
        let own_samples = ["proto/src/code.rs", "src/pages/tests.rs"].iter().any(|own| path.ends_with(own));
        for (number, word) in mentions(&text).into_iter().filter(|_| !own_samples) {
            let code = Code::numbered(number);
            let right = code.is_some_and(|code| code.slug() == word);
            assert!(right, "{}: T{number} {word} should be {code:?}", path.display());
            found += 1;
        }
    }
    assert!(found > 100, "{found}");
}

/// What judges facts knows no catalogue.
#[test]
fn what_a_diagnosis_finds_is_in_the_catalogue_under_the_same_word() {
    let found: Vec<_> = tripod_sight::Code::ALL.iter().map(|code| code.parts()).collect();
    let known = Code::ALL.iter().map(|code| (code.number(), code.slug()));
    assert_eq!(found, known.filter(|(number, _)| (7100..7300).contains(number)).collect::<Vec<_>>());
}

#[test]
fn every_code_is_used_somewhere() {
    let sources = files(".rs");
    let texts: Vec<String> = sources.iter().filter_map(|(path, text)| without_tests(path, text)).collect();
    let of_exits = "services/tripod/src/failure.rs";
    for code in Code::ALL {
        let written = format!("\"{code}: ");
        let named = format!("Code::{}", code.variant());
        // The table of exit codes names many; only a use makes somebody see one.
        let uses = |text: &String| {
            let places = text.match_indices(&named).filter(|(at, _)| {
                let next = text[at + named.len()..].chars().next();
                !next.is_some_and(char::is_alphanumeric)
            });
            places.count()
        };
        let table = sources.iter().find(|(path, _)| path.ends_with(of_exits)).expect("there");
        let table =
            table.1.split("pub(crate) fn exit(code").nth(1).and_then(|rest| rest.split("\n}\n").next());
        let in_table = uses(&table.expect("the function is there").to_owned());
        let all: usize = texts.iter().map(uses).sum();
        assert!(texts.iter().any(|text| text.contains(&written)) || all > in_table, "{code} is used nowhere");
    }
}

#[test]
fn nothing_else_looks_like_a_code() {
    let before = concat!("TRIPOD", "-");
    let follows = |text: &str| {
        let places = text.match_indices(before);
        places
            .filter(|(at, _)| text[at + before.len()..].starts_with(|c: char| c.is_ascii_uppercase()))
            .count()
    };
    for (path, text) in files(".rs").into_iter().chain(files(".md")) {
        assert_eq!(follows(&text), 0, "{}: a code is written `Tnnnn word`", path.display());
    }
}

#[test]
fn commands_in_the_pages_are_commands() {
    let mut found = 0;
    for code in Code::ALL {
        let mut fenced = false;
        for line in of(*code).lines() {
            fenced ^= line.starts_with("```");
            if !fenced || !line.starts_with("tripod ") {
                continue;
            }
            let words = line.split_whitespace().take_while(|word| *word != "<");
            // What a line of `server` lacks may stand in its file.
            let optional = |server: clap::Command| server.mut_args(|arg| arg.required(false));
            let parsed = Cli::command().mut_subcommand("server", optional).try_get_matches_from(words);
            let helped = |error: &clap::Error| !error.use_stderr();
            assert!(parsed.as_ref().err().is_none_or(helped), "{code}: {line}: {:?}", parsed.err());
            found += 1;
        }
    }
    assert!(found > 60, "{found}");
}

/// What this program warns of without a code, since there is no page about it: nothing that an operator looks up.
const WITHOUT_A_PAGE: &[&str] = &[
    "few objects fit into this store",
    "job default exists with other parameters",
    "job port failed",
    "port failed",
    "process could not be killed",
    "process did not end in time and is killed",
    "replication did not end in time",
    "signal could not be passed on",
    "the limit of open files cannot be raised",
    "the note of joining could not be removed",
    "the note of the cluster's job ports cannot be read",
    "the note of the members that this node was told of cannot be read",
    "the note of the members that this node was told of is no list",
    "this node serves jobs at other ports than the nodes that it joined",
];

/// The arguments of every warning and error in a source.
fn warnings(source: &str) -> Vec<&str> {
    let begins = ["tracing::warn!(", "tracing::error!("];
    let places = begins.iter().flat_map(|begin| source.match_indices(begin).map(|(at, _)| at + begin.len()));
    places.map(|at| arguments(&source[at..])).collect()
}

/// Up to the parenthesis that closes what was opened before.
fn arguments(rest: &str) -> &str {
    let (mut depth, mut quoted) = (1, false);
    for (at, letter) in rest.char_indices() {
        quoted ^= letter == '"';
        match letter {
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &rest[..at];
        }
    }
    rest
}

#[test]
fn a_warning_has_the_code_of_its_page() {
    let (mut coded, mut plain) = (0, BTreeSet::<&str>::new());
    for (path, text) in files(".rs") {
        let own = path.starts_with(root().join("services/tripod/src"));
        let Some(text) = without_tests(&path, &text).filter(|_| own) else { continue };
        for arguments in warnings(&text) {
            // A failure begins with its code, which the log makes a field.
            let has_code = ["code = ", "code,", "%failure"].iter().any(|field| arguments.contains(field));
            let listed = WITHOUT_A_PAGE.iter().find(|message| arguments.contains(**message));
            assert!(
                has_code != listed.is_some(),
                "{}: a field `code` is missing, or this is to be listed as without a page: {arguments}",
                path.display()
            );
            coded += usize::from(has_code);
            plain.extend(listed.copied());
        }
    }
    assert!(coded >= 7, "{coded}");
    assert_eq!(plain.len(), WITHOUT_A_PAGE.len(), "only these are left: {plain:?}");
}

#[test]
fn a_code_is_found_by_number_or_word() {
    for name in ["T3101", "t3101", "3101", "log-damaged", "T3101:", "LOG-DAMAGED"] {
        assert_eq!(named(name), Some(Code::LogDamaged), "{name}");
    }
    for name in ["", "T", "T31", "T9999", "log", "log-damaged-x"] {
        assert_eq!(named(name), None, "{name}");
    }
    assert_eq!((exit(Code::Usage), exit(Code::NoLeader)), (Exit::Usage, Exit::Unreachable));
}
