//! A mistake that somebody could make in a file, and how it is made.

use std::fmt;

/// One mistake.
pub(super) struct Mutant {
    /// What `--only` calls it.
    pub(super) name: &'static str,
    /// What is promised, and would not be true any more.
    pub(super) promise: &'static str,
    /// Relative to the root of the workspace.
    pub(super) file: &'static str,
    /// Consecutive lines of the file, without the blanks around them. They stand there once.
    pub(super) original: &'static [&'static str],
    /// The lines that take their place.
    pub(super) replacement: &'static [&'static str],
    /// Which tests should notice: words that `cargo nextest run` and `cargo test` understand alike.
    pub(super) tests: &'static str,
}

/// Why a mistake cannot be made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rot {
    /// The lines are not there any more.
    Missing,
    /// They stand in so many places.
    Ambiguous(usize),
    /// What takes their place is the same.
    Unchanged,
}

impl Mutant {
    /// The file's text with the mistake in it.
    ///
    /// # Errors
    /// [`Rot`]: the row is about another text.
    pub(super) fn apply(&self, text: &str) -> Result<String, Rot> {
        if self.original == self.replacement {
            return Err(Rot::Unchanged);
        }
        let lines: Vec<&str> = text.lines().collect();
        let is_here =
            |window: &[&str]| window.iter().zip(self.original).all(|(line, wanted)| line.trim() == *wanted);
        let found: Vec<usize> = lines
            .windows(self.original.len().max(1))
            .enumerate()
            .filter(|(_, window)| is_here(window))
            .map(|(at, _)| at)
            .collect();
        let at = match found[..] {
            [] => return Err(Rot::Missing),
            [at] => at,
            _ => return Err(Rot::Ambiguous(found.len())),
        };
        let first = lines[at];
        let indent = &first[..first.len() - first.trim_start().len()];
        let mut mutated = String::with_capacity(text.len());
        let mut push = |indent: &str, line: &str| mutated.extend([indent, line, "\n"]);
        lines[..at].iter().for_each(|line| push("", line));
        self.replacement.iter().for_each(|line| push(indent, line));
        lines[at + self.original.len()..].iter().for_each(|line| push("", line));
        Ok(mutated)
    }
}

impl fmt::Display for Rot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("its original lines do not stand in the file any more"),
            Self::Ambiguous(places) => write!(f, "its original lines stand in {places} places of the file"),
            Self::Unchanged => f.write_str("its replacement is what stood there before"),
        }
    }
}

#[cfg(test)]
pub(super) fn sample(original: &'static [&'static str], replacement: &'static [&'static str]) -> Mutant {
    Mutant {
        name: "sample",
        promise: "What is given is given back.",
        file: "src/a.rs",
        original,
        replacement,
        tests: "-p a",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn f() {\n    let a = 1;\n    if a < 2 {\n        g(a);\n    }\n    h(a);\n}\n";

    #[test]
    fn lines_are_found_whatever_their_indentation_and_what_takes_their_place_has_it() {
        let mutant = sample(&["if a < 2 {", "g(a);", "}"], &["if a <= 2 {", "g(a);", "}"]);
        let mutated = mutant.apply(TEXT).unwrap();
        assert_eq!(
            mutated, "fn f() {\n    let a = 1;\n    if a <= 2 {\n    g(a);\n    }\n    h(a);\n}\n",
            "only the first line's indentation is kept"
        );
        let gone = sample(&["h(a);"], &[]);
        assert_eq!(gone.apply(TEXT).unwrap(), TEXT.replace("    h(a);\n", ""));
    }

    #[test]
    fn a_part_of_a_line_is_none() {
        assert_eq!(sample(&["a < 2 {"], &["a"]).apply(TEXT), Err(Rot::Missing));
        assert_eq!(sample(&["let a = 1;", "g(a);"], &["a"]).apply(TEXT), Err(Rot::Missing));
    }

    #[test]
    fn what_is_not_there_once_and_what_changes_nothing_is_rot() {
        let twice = format!("{TEXT}{TEXT}");
        assert_eq!(sample(&["h(a);"], &[]).apply(&twice), Err(Rot::Ambiguous(2)));
        assert_eq!(sample(&["h(a);"], &["h(a);"]).apply(TEXT), Err(Rot::Unchanged));
        assert_eq!(sample(&["h(b);"], &[]).apply(TEXT), Err(Rot::Missing));
        assert_eq!(sample(&["h(b);"], &[]).apply(""), Err(Rot::Missing));
    }
}
