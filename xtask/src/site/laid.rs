//! The pages of the site, as mdBook reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

use crate::tidy::links;

/// The list of the pages in `docs/`, in the order of the site.
const SUMMARY: &str = "docs/SUMMARY.md";
/// The folder of that list.
const FOLDER: &str = "docs/";
/// The first page of the site.
const FIRST: &str = "README.md";
/// What mdBook calls the page of a folder.
const INDEX: &str = "index.md";
/// The heading of pages that are linked and lie outside of `docs/`.
const OUTSIDE: &str = "Beside the source";

/// Paths are those of the project, with `/`.
#[derive(Debug, Default)]
pub(super) struct Laid {
    /// The texts of pages.
    pages: BTreeMap<String, String>,
    /// What is linked and is no page: pictures, examples.
    files: BTreeSet<String>,
    /// The list of pages, as mdBook reads it.
    summary: String,
}

impl Laid {
    /// All pages of `docs/`, and whatever is reached from them.
    ///
    /// # Errors
    /// A page cannot be read.
    pub(super) fn of(root: &Path) -> Result<Self> {
        let read = |path: &str| {
            fs::read_to_string(root.join(path)).with_context(|| format!("cannot read the page {path}"))
        };
        let listed = read(SUMMARY)?;
        let mut laid = Self::default();
        let mut open: Vec<String> =
            listed.lines().flat_map(links::targets).map(|page| format!("{FOLDER}{page}")).collect();
        open.push(FIRST.to_owned());
        while let Some(path) = open.pop() {
            if laid.pages.contains_key(&path) || laid.files.contains(&path) {
                continue;
            }
            if !is_page(&path) {
                laid.files.insert(path);
                continue;
            }
            let text = read(&path)?;
            for target in targets(&text) {
                open.push(reached(&path, &target));
            }
            laid.pages.insert(path, text);
        }
        laid.summary = laid.summary_of(&listed);
        Ok(laid)
    }

    /// Writes it below `to`; other files are copied from `root`.
    ///
    /// # Errors
    /// Something cannot be read or written.
    pub(super) fn write(&self, root: &Path, to: &Path) -> Result<()> {
        let place = |path: &str| -> Result<PathBuf> {
            let path = to.join(path);
            let folder = path.parent().expect("a file lies in a folder");
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            Ok(path)
        };
        for (path, text) in &self.pages {
            let place = place(&renamed(path))?;
            fs::write(&place, with_names_of_site(text))
                .with_context(|| format!("cannot write {}", place.display()))?;
        }
        for path in &self.files {
            fs::copy(root.join(path), place(path)?).with_context(|| format!("cannot copy {path}"))?;
        }
        fs::write(place("SUMMARY.md")?, &self.summary).context("cannot write the list of pages")
    }

    /// That of `docs/`, in front of it the first page, and behind it what lies elsewhere.
    fn summary_of(&self, listed: &str) -> String {
        let within = with_names_of_site(&listed.replace("](", &format!("]({FOLDER}")));
        let (heading, rest) = within.split_once("\n\n").unwrap_or(("", &within));
        let mut summary = format!("{heading}\n\n[Tripod]({})\n{rest}\n# {OUTSIDE}\n\n", renamed(FIRST));
        let outside = self.pages.iter().filter(|(path, _)| !path.starts_with(FOLDER) && *path != FIRST);
        for (path, text) in outside {
            let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(path);
            // READMEs of several folders have one title.
            let folder = path.rsplit_once('/').map_or_else(String::new, |(folder, _)| format!(" ({folder})"));
            summary.push_str(&format!("* [{title}{folder}]({})\n", renamed(path)));
        }
        summary
    }
}

fn is_page(path: &str) -> bool {
    path.ends_with(".md")
}

/// Where the links of a page lead within the project.
fn targets(text: &str) -> BTreeSet<String> {
    let prose = links::prose(text);
    let targets = prose.iter().flat_map(|line| links::targets(line));
    targets
        .filter(|target| !links::is_elsewhere(target) && !target.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// The path that a link of a page leads to, without a heading.
fn reached(page: &str, target: &str) -> String {
    let path = target.split('#').next().unwrap_or_default();
    let parts = links::beside(page, path);
    let names = parts.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    names.collect::<Vec<_>>().join("/")
}

/// The name of a page on the site.
fn renamed(path: &str) -> String {
    match path.strip_suffix(FIRST) {
        Some(folder) if folder.is_empty() || folder.ends_with('/') => format!("{folder}{INDEX}"),
        _ => path.to_owned(),
    }
}

/// A page whose links name pages as the site does.
fn with_names_of_site(text: &str) -> String {
    let mut text = text.to_owned();
    for target in targets(&text) {
        let (path, heading) =
            target.split_once('#').map_or((target.as_str(), None), |(path, heading)| (path, Some(heading)));
        let path = renamed(path);
        let named = heading.map_or(path.clone(), |heading| format!("{path}#{heading}"));
        text = text.replace(&format!("]({target})"), &format!("]({named})"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::root;

    #[test]
    fn a_folders_page_has_the_name_that_mdbook_gives_it() {
        let page = "[a](README.md), [b](../x/README.md#one) [c](README.md.txt) [d](https://x.org/README.md)\n`[e](README.md)`\n";
        let named = "[a](index.md), [b](../x/index.md#one) [c](README.md.txt) [d](https://x.org/README.md)\n`[e](index.md)`\n";
        assert_eq!(with_names_of_site(page), named);
    }

    #[test]
    fn all_that_pages_link_is_on_the_site_and_every_page_is_listed() {
        let laid = Laid::of(&root()).unwrap();
        assert!(laid.pages.len() > 200, "{} pages", laid.pages.len());
        for page in [FIRST, "docs/README.md", "ARCHITECTURE.md", "CHANGELOG.md"] {
            assert!(laid.pages.contains_key(page), "{page}");
        }
        assert!(laid.files.contains("docs/pictures/ports.svg"), "{:?}", laid.files);
        let folder = tempfile::tempdir().unwrap();
        laid.write(&root(), folder.path()).unwrap();
        let list = fs::read_to_string(folder.path().join("SUMMARY.md")).unwrap();
        for (path, text) in &laid.pages {
            let name = renamed(path);
            assert_eq!(list.matches(&format!("]({name})")).count(), 1, "{name} in the list");
            for target in targets(text) {
                let reached = renamed(&reached(path, &target));
                assert!(folder.path().join(&reached).is_file(), "{path} links {reached}");
            }
        }
    }
}
