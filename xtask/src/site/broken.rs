//! Links of a site that lead nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

/// It is shown in the place of any page, so its links are those of no folder.
const ANYWHERE: &str = "404.html";

/// Complaints as `page: link`, one for each link.
///
/// # Errors
/// A folder or a page cannot be read.
pub(super) fn links(site: &Path) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    read_pages(site, &mut pages)?;
    let anchors: BTreeMap<&Path, BTreeSet<&str>> =
        pages.iter().map(|(path, text)| (path.as_path(), values(text, "id").collect())).collect();
    let mut broken = BTreeSet::new();
    for (page, text) in pages.iter().filter(|(page, _)| !page.ends_with(ANYWHERE)) {
        for link in values(text, "href").chain(values(text, "src")) {
            if has_scheme(link) {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = if path.is_empty() { page.clone() } else { beside(page, path) };
            let is_there = match anchors.get(file.as_path()) {
                Some(anchors) => anchor.is_empty() || anchors.contains(anchor),
                None => file.is_file(),
            };
            if !is_there {
                let page = page.strip_prefix(site).unwrap_or(page);
                broken.insert(format!("{}: {link}", page.display()));
            }
        }
    }
    Ok(broken.into_iter().collect())
}

fn read_pages(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry.with_context(|| format!("cannot list {}", folder.display()))?.path();
        if path.is_dir() {
            read_pages(&path, pages)?;
        } else if path.extension().is_some_and(|end| end == "html") {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            pages.insert(path, text);
        }
    }
    Ok(())
}

/// The values of an attribute.
fn values<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let begin = format!(" {name}=\"");
    let starts: Vec<usize> = text.match_indices(&begin).map(|(at, found)| at + found.len()).collect();
    starts.into_iter().filter_map(|at| text[at..].split_once('"')).map(|(value, _)| value)
}

/// Whether a link leads to another server, or is no path at all.
fn has_scheme(link: &str) -> bool {
    link.split_once(':').is_some_and(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphabetic()))
}

fn beside(page: &Path, link: &str) -> PathBuf {
    let mut path = page.to_path_buf();
    path.pop();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_a_heading_and_a_picture_that_are_missing_are_found() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        let page = "<h1 id=\"top\">x</h1> <a class=\"l\" href=\"../b.html#there\">1</a> <a href=\"#top\">2</a> \
                    <a href=\"https://example.org/x\">3</a> <a href=\"../b.html#gone\">4</a> \
                    <a href=\"c.html\">5</a> <img src=\"d.svg\">";
        fs::write(folder.path().join("a/a.html"), page).unwrap();
        fs::write(folder.path().join("b.html"), "<h2 id=\"there\">y</h2>").unwrap();
        fs::write(folder.path().join("404.html"), "<a href=\"nowhere.html\">").unwrap();
        let broken = links(folder.path()).unwrap();
        assert_eq!(broken, ["a/a.html: ../b.html#gone", "a/a.html: c.html", "a/a.html: d.svg"]);
    }
}
