//! What the modules of a crate name by `crate::` and `super::`, wherever it is compiled into the product.

use std::collections::BTreeMap;

use crate::tidy::mask::code_only;

/// One file.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) file: String,
    /// Where it stands in the crate; nothing for the root.
    pub(super) path: Vec<String>,
    /// Lines, and the beginnings of the paths that they name.
    pub(super) names: Vec<(usize, Vec<String>)>,
}

/// What marks an item that only tests have.
const ONLY_TESTS: &str = "#[cfg(test)]";
/// So many words of a path tell the folder.
const WORDS: usize = 2;

/// The modules that `lib.rs` and those below it declare for more than tests. `files`: texts by their paths.
pub(super) fn modules(files: &BTreeMap<String, String>) -> Vec<Module> {
    let mut found = Vec::new();
    let mut open = vec![("lib.rs".to_owned(), Vec::new())];
    while let Some((file, path)) = open.pop() {
        let Some(text) = files.get(&file) else { continue };
        let code = product(&code_only(text));
        for name in code.lines().filter_map(declared) {
            let below = [path.clone(), vec![name.to_owned()]].concat();
            let place = below.join("/");
            let places = [format!("{place}.rs"), format!("{place}/mod.rs")];
            open.extend(
                places
                    .into_iter()
                    .filter(|place| files.contains_key(place))
                    .map(|place| (place, below.clone())),
            );
        }
        let names = names(&code, &path);
        found.push(Module { file, path, names });
    }
    found
}

/// The code without the items that only tests have; lines stay.
fn product(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find(ONLY_TESTS) {
        let begin = at + ONLY_TESTS.len();
        let end = begin + item_length(&rest[begin..]);
        kept.push_str(&rest[..at]);
        kept.extend(rest[at..end].chars().filter(|c| *c == '\n'));
        rest = &rest[end..];
    }
    kept.push_str(rest);
    kept
}

/// How far the item reaches that begins here: to its semicolon or brace, or for a field to its comma.
fn item_length(text: &str) -> usize {
    let field = is_field(text);
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            // What surrounds a last field ends.
            ')' | ']' | '}' if depth == 0 => return at,
            ')' | ']' | '}' => {
                depth -= 1;
                if depth == 0 && c == '}' && !field {
                    return at + 1;
                }
            }
            ';' if depth == 0 => return at + 1,
            ',' if depth == 0 && field => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Whether it is a field, `name: ...`, and no item.
fn is_field(text: &str) -> bool {
    let text = without_visibility(text.trim_start());
    let rest = text.trim_start_matches(part_of_name);
    rest.len() < text.len() && rest.starts_with(':') && !rest.starts_with("::")
}

/// The name of the module that a line declares in a file of its own.
fn declared(line: &str) -> Option<&str> {
    without_visibility(line.trim()).strip_prefix("mod ")?.strip_suffix(';')
}

fn without_visibility(item: &str) -> &str {
    let Some(rest) = item.strip_prefix("pub") else { return item };
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')').map_or("", |(_, rest)| rest),
        None => rest,
    };
    rest.trim_start()
}

/// All names in `code`, which stands at `own` in the crate.
fn names(code: &str, own: &[String]) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    for root in ["crate::", "super::"] {
        for (at, _) in code.match_indices(root) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| part_of_name(c) || c == ':') {
                continue;
            }
            let (mut rest, mut up) = (&code[at..], 0);
            while let Some(above) = rest.strip_prefix("super::") {
                (rest, up) = (above, up + 1);
            }
            let above = match rest.strip_prefix("crate::") {
                Some(named) => {
                    rest = named;
                    &[][..]
                }
                None => &own[..own.len().saturating_sub(up)],
            };
            let line = code[..at].matches('\n').count() + 1;
            found
                .extend(paths(rest, WORDS).into_iter().map(|path| (line, [above, path.as_slice()].concat())));
        }
    }
    found
}

/// The first words of each path of a tree like `a::{b, c::d}`.
fn paths(tree: &str, words: usize) -> Vec<Vec<String>> {
    let tree = tree.trim_start();
    if words == 0 {
        return vec![Vec::new()];
    }
    if let Some(group) = tree.strip_prefix('{') {
        return branches(group).into_iter().flat_map(|branch| paths(branch, words)).collect();
    }
    let rest = tree.trim_start_matches(part_of_name);
    let word = &tree[..tree.len() - rest.len()];
    if word.is_empty() || word == "self" {
        return vec![Vec::new()];
    }
    let below = rest.strip_prefix("::").map_or_else(|| vec![Vec::new()], |rest| paths(rest, words - 1));
    below.into_iter().map(|tail| [vec![word.to_owned()], tail].concat()).collect()
}

/// What stands between the commas of a group, up to its closing brace.
fn branches(group: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut depth, mut begin) = (0_usize, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                found.push(&group[begin..at]);
                begin = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    found.retain(|branch| !branch.trim().is_empty());
    found
}

fn part_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
