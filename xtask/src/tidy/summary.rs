//! The site has every page: `docs/SUMMARY.md` names each page of `docs/` once.

use std::path::Path;

use anyhow::{Context, Result};

use super::walk;

const FOLDER: &str = "docs/";
const SUMMARY: &str = "docs/SUMMARY.md";

/// Complaints about pages that the site would not have. A project without pages has none.
pub(super) fn check(root: &Path, files: &[walk::File]) -> Result<Vec<String>> {
    let pages = files.iter().map(|file| file.path.as_str());
    let pages: Vec<&str> = pages.filter(|path| path.starts_with(FOLDER) && path.ends_with(".md")).collect();
    if pages.is_empty() || !root.join("docs/book.toml").exists() {
        return Ok(Vec::new());
    }
    let summary = files.iter().find(|file| file.path == SUMMARY);
    let summary = summary.with_context(|| format!("docs/book.toml is there, and no {SUMMARY}"))?;
    Ok(unlisted(&summary.text, &pages))
}

fn unlisted(summary: &str, pages: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    for page in pages.iter().filter(|page| **page != SUMMARY) {
        let link = format!("]({})", page.strip_prefix(FOLDER).unwrap_or(page));
        match summary.matches(&link).count() {
            1 => {}
            0 => wrong.push(format!("{SUMMARY} does not name {page}")),
            many => wrong.push(format!("{SUMMARY} names {page} {many} times")),
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_named_once() {
        let pages = ["docs/SUMMARY.md", "docs/a.md", "docs/b/c.md"];
        assert!(unlisted("* [A](a.md)\n  * [C](b/c.md)\n", &pages).is_empty());
        assert_eq!(unlisted("* [A](a.md)\n", &pages), ["docs/SUMMARY.md does not name docs/b/c.md"]);
        assert_eq!(
            unlisted("* [A](a.md) [A](a.md) [C](b/c.md)\n", &pages),
            ["docs/SUMMARY.md names docs/a.md 2 times"]
        );
    }
}
