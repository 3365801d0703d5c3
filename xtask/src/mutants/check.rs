//! Whether the rows are about the tree as it is: a row whose text has moved on guards nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::row::Mutant;
use super::table;

/// What is wrong with the table, for `cargo xtask verify`: rows whose text has moved on, and names that stand twice.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let mut names = BTreeSet::new();
    let mut wrong = Vec::new();
    for mutant in table::all() {
        let Mutant { name, file, .. } = mutant;
        if !names.insert(name) {
            wrong.push(format!("xtask/src/mutants: two mutants are called {name}"));
        }
        let applied = match fs::read_to_string(root.join(file)) {
            Ok(text) => mutant.apply(&text).map(|_| ()).map_err(|rot| rot.to_string()),
            Err(error) => Err(format!("it cannot be read: {error}")),
        };
        if let Err(why) = applied {
            wrong.push(format!(
                "{file}: the mutant {name} in xtask/src/mutants/table cannot be made: {why}; make the same mistake in \
                 the text of now, and see it caught: cargo xtask mutants --only {name}"
            ));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_says_all_that_is_needed() {
        assert!(table::all().count() >= 10);
        for mutant in table::all() {
            let Mutant { name, promise, original, replacement, tests, .. } = mutant;
            assert!(promise.ends_with('.') && promise.len() > 20, "{name} breaks no promise");
            assert!(tests.starts_with("-p tripod-"), "{name} names no package");
            let lines = original.iter().chain(*replacement);
            assert!(lines.clone().all(|line| line.trim() == *line), "{name} has blanks around a line");
            assert!(original.iter().any(|line| !line.is_empty()), "{name} is about nothing");
        }
    }

    #[test]
    fn a_tree_without_the_files_has_a_complaint_for_each_row() {
        let complaints = check(Path::new("/nowhere"));
        assert_eq!(complaints.len(), table::all().count());
        assert!(complaints.iter().all(|complaint| complaint.contains("cargo xtask mutants --only ")));
    }
}
