//! Every link of a page leads to a file that is there, and to a heading that it has.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::walk::File;

/// How links begin that lead elsewhere.
const ELSEWHERE: &[&str] = &["http://", "https://", "mailto:"];

/// Complaints as `line: what`.
pub(super) fn check(root: &Path, file: &File) -> Vec<String> {
    if !file.path.ends_with(".md") {
        return Vec::new();
    }
    broken(file, |path| {
        let path = root.join(path);
        // A folder or a picture has no headings.
        path.exists().then(|| fs::read_to_string(&path).unwrap_or_default())
    })
}

/// `read` gives the text of a file, by its path from the root; `None`: there is none.
fn broken(file: &File, read: impl Fn(&Path) -> Option<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (index, line) in prose(&file.text).iter().enumerate() {
        for target in targets(line) {
            if is_elsewhere(target) {
                continue;
            }
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if path.is_empty() { PathBuf::from(&file.path) } else { beside(&file.path, path) };
            match read(&path) {
                None => wrong.push(format!("{}: a link to {target}, which is not there", index + 1)),
                Some(text) if !heading.is_empty() && !headings(&text).iter().any(|one| one == heading) => {
                    wrong.push(format!("{}: a link to {target}, and there is no such heading", index + 1));
                }
                Some(_) => {}
            }
        }
    }
    wrong
}

/// Whether a link leads out of the project.
pub(crate) fn is_elsewhere(target: &str) -> bool {
    ELSEWHERE.iter().any(|begin| target.starts_with(begin))
}

/// The lines of a page without its blocks of code and what is quoted.
pub(crate) fn prose(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        let quoted = line.split('`').step_by(2);
        lines.push(if is_code || fence { String::new() } else { quoted.collect() });
    }
    lines
}

/// Where the links of a line lead.
pub(crate) fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// A path from the root, of a file that is named in another one.
pub(crate) fn beside(page: &str, named: &str) -> PathBuf {
    let mut path = PathBuf::from(page);
    path.pop();
    for part in Path::new(named).components() {
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

/// The names by which the headings of a page are linked.
fn headings(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut names = Vec::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if !is_code && line.starts_with('#') {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            names.push(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::walk::sample;
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        broken(&sample("docs/clients/a.md", text), |path| match path.to_str() {
            Some("docs/b.md") => Some("# B\n\n## Two planned `stops`, at once\n".to_owned()),
            Some("docs/clients/a.md") => Some("# A\n".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let text = "[x](../b.md)\n[y](c.md) and [z](../b.md#three)\n";
        assert_eq!(
            complaints(text),
            [
                "2: a link to c.md, which is not there",
                "2: a link to ../b.md#three, and there is no such heading"
            ]
        );
    }

    #[test]
    fn headings_pages_elsewhere_and_code_are_fine() {
        for fine in [
            "[x](../b.md#two-planned-stops-at-once) [y](#a)\n",
            "[x](https://example.org/c.md)\n",
            "`[x](c.md)`\n```\n[x](c.md)\n```\n",
        ] {
            assert_eq!(complaints(fine), [""; 0], "{fine}");
        }
    }
}
