//! Words that must not occur in the state machine: whatever they name differs between replicas.

use super::mask;
use super::walk::File;

/// The state machine's sources.
const FOLDER: &str = "state/src/";

const FORBIDDEN: &[(&str, &str)] = &[
    ("Instant", "time enters by the log"),
    ("SystemTime", "time enters by the log"),
    ("HashMap", "iteration order differs between replicas"),
    ("HashSet", "iteration order differs between replicas"),
    ("rand", "random numbers enter by commands"),
    ("env::var", "the environment differs between replicas"),
    ("tokio", "the state machine is synchronous"),
    ("f32", "rounding differs between machines"),
    ("f64", "rounding differs between machines"),
];

/// Names the kinds of numbers that it refuses, as the trait that it implements wants.
const REFUSES_FRACTIONS: &str = "state/src/canonical.rs";

/// Complaints as `line: what`. Comments, docs and text in quotes may say these words.
pub(super) fn check(file: &File) -> Vec<String> {
    if !file.path.starts_with(FOLDER) || !file.is_rust() {
        return Vec::new();
    }
    let code = mask::code_only(&file.text);
    let mut wrong = Vec::new();
    for (index, line) in code.lines().enumerate() {
        for (word, because) in FORBIDDEN {
            let refuses_it = file.path == REFUSES_FRACTIONS && ["f32", "f64"].contains(word);
            if has_word(line, word) && !refuses_it {
                wrong.push(format!("{}: `{word}`: {because}", index + 1));
            }
        }
    }
    wrong
}

fn has_word(line: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
    })
}

#[cfg(test)]
mod tests {
    use super::super::walk::sample;
    use super::*;

    #[test]
    fn every_forbidden_word_is_found() {
        for (word, _) in FORBIDDEN {
            let wrong = check(&sample("state/src/kv/mod.rs", &format!("fn f() {{\n    {word}::x();\n}}\n")));
            assert_eq!(wrong.len(), 1, "{word}");
            assert!(wrong[0].starts_with("2: "), "{wrong:?}");
        }
    }

    #[test]
    fn comments_texts_longer_names_and_other_crates_are_fine() {
        for fine in ["// a HashMap", "/// f64", "let x = \"Instant\";", "let operand = 1;", "/* rand */"] {
            assert!(check(&sample("state/src/kv/mod.rs", fine)).is_empty(), "{fine}");
        }
        assert!(check(&sample("raft/src/lib.rs", "use tokio::time::Instant;")).is_empty());
    }
}
