//! No tabs, no blanks at the end of a line, one newline at the end of a file.

use super::walk::File;

/// Complaints as `line: what`.
pub(super) fn check(file: &File) -> Vec<String> {
    let mut wrong = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if line.contains('\t') {
            wrong.push(format!("{}: tab", index + 1));
        }
        if line.ends_with([' ', '\r']) {
            wrong.push(format!("{}: blank at the end of the line", index + 1));
        }
    }
    if !file.text.is_empty() && (!file.text.ends_with('\n') || file.text.ends_with("\n\n")) {
        wrong.push(format!("{}: a file ends with exactly one newline", file.text.lines().count()));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::super::walk::sample;
    use super::*;

    #[test]
    fn tabs_trailing_blanks_and_ends_are_found() {
        let wrong = check(&sample("a.rs", "fine\n\tindented\nblank \n"));
        assert_eq!(wrong, ["2: tab", "3: blank at the end of the line"]);
        assert_eq!(check(&sample("a.rs", "no newline")).len(), 1);
        assert_eq!(check(&sample("a.rs", "two newlines\n\n")).len(), 1);
        assert!(check(&sample("a.rs", "fine\n")).is_empty());
    }
}
