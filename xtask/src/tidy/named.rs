//! Every source file and page that `CONTRIBUTING.md` names is there: its lists say where something is added.

use std::path::Path;

use super::walk::File;

const PAGE: &str = "CONTRIBUTING.md";

/// Complaints as `line: what`.
pub(super) fn check(root: &Path, file: &File) -> Vec<String> {
    if file.path != PAGE {
        return Vec::new();
    }
    missing(&file.text, |path| root.join(path).exists())
}

fn missing(text: &str, is_there: impl Fn(&str) -> bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for path in line.split('`').skip(1).step_by(2).filter(|quoted| is_file(quoted)) {
            if !is_there(path) {
                wrong.push(format!("{}: there is no {path}", index + 1));
            }
        }
    }
    wrong
}

/// Whether it names one file of the tree.
fn is_file(quoted: &str) -> bool {
    quoted.contains('/')
        && !quoted.contains(['*', ' '])
        && [".rs", ".md"].iter().any(|end| quoted.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_found_and_what_names_no_file_is_left_alone() {
        let text = "a `state/src/old.rs` and `state/src/new.rs`\n`mod.rs` of `services/*/tests` or `docs/`\n";
        let wrong = missing(text, |path| path == "state/src/new.rs");
        assert_eq!(wrong, ["1: there is no state/src/old.rs"]);
    }
}
