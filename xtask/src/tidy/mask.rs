//! Rust source with comments and text in quotes blanked out, line for line.

/// The code of `source`; everything else becomes spaces, newlines stay.
pub(crate) fn code_only(source: &str) -> String {
    let mut masked = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let skipped = comment(rest).or_else(|| quoted(rest, masked.chars().next_back()));
        if let Some(length) = skipped {
            masked.extend(rest[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = &rest[length..];
        } else {
            masked.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    masked
}

/// Length of the comment that `rest` begins with. Block comments nest.
fn comment(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if !rest.starts_with("/*") {
        return None;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let tail = &rest[at..];
        if tail.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += tail.chars().next().map_or(1, char::len_utf8);
        }
    }
    Some(rest.len())
}

/// Length of the string or character that `rest` begins with. `before` tells a raw string's `r` from
/// the end of a name.
fn quoted(rest: &str, before: Option<char>) -> Option<usize> {
    let inside_name = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with('r') && !inside_name {
        let hashes = rest[1..].len() - rest[1..].trim_start_matches('#').len();
        if rest[1 + hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = 2 + hashes;
            return Some(rest[body..].find(&end).map_or(rest.len(), |at| body + at + end.len()));
        }
    }
    if rest.starts_with('"') {
        return Some(escaped_end(rest, '"'));
    }
    // A lifetime has no closing quote right after its first character.
    let mut chars = rest.chars();
    if chars.next() == Some('\'') {
        let first = chars.next()?;
        if first == '\\' || chars.next() == Some('\'') {
            return Some(escaped_end(rest, '\''));
        }
    }
    None
}

fn escaped_end(rest: &str, quote: char) -> usize {
    let mut escape = false;
    for (at, c) in rest.char_indices().skip(1) {
        if escape {
            escape = false;
        } else if c == '\\' {
            escape = true;
        } else if c == quote {
            return at + c.len_utf8();
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn keeps(source: &str, code: &str) {
        let words: Vec<String> = code_only(source).split_whitespace().map(str::to_owned).collect();
        assert_eq!(words.join(" "), code, "{source}");
        assert_eq!(code_only(source).lines().count(), source.lines().count());
    }

    #[test]
    fn comments_go() {
        keeps("a // b\nc", "a c");
        keeps("a /* b /* c */ d\n e */ f", "a f");
        keeps("/// doc\nfn", "fn");
    }

    #[test]
    fn text_goes() {
        keeps(r#"a "b \" // c" d"#, "a d");
        keeps("a r#\"b \" c\"# d", "a d");
        keeps("a b\"c\" d", "a b d");
        keeps(r"a '\'' b '/' c", "a b c");
    }

    #[test]
    fn lifetimes_and_names_stay() {
        keeps("fn f<'a>(x: &'a str) -> &'a str", "fn f<'a>(x: &'a str) -> &'a str");
        keeps("for \"x\" bar", "for bar");
    }
}
