//! What a page shows of a screen, beside what was on one.
//!
//! Pages show it in a block of kind `text` behind the block of its commands. `…` stands for what differs from time to
//! time: within a line for any text, as a line for any lines. Columns are as wide as what is in them, so how many spaces
//! there are is not compared, nor are empty lines.

const ANY: &str = "…";

/// In what the screen differs from what the page shows; `None`: it does not.
pub(crate) fn difference(shown: &[String], printed: &str) -> Option<String> {
    let wanted = lines(shown.iter().map(String::as_str));
    let seen = lines(printed.lines());
    let wanted_text = || wanted.join("\n");
    (!lines_match(&wanted, &seen))
        .then(|| format!("the page shows\n{}\nand on the screen is\n{}", wanted_text(), printed.trim_end()))
}

/// As a test asserts it: `what` was typed.
pub(crate) fn assert_as_shown(what: &str, shown: &[String], printed: &str) {
    assert!(!shown.is_empty(), "the page shows nothing behind `{what}`");
    if let Some(difference) = difference(shown, printed) {
        panic!("`{what}`: {difference}");
    }
}

fn lines<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect()
}

fn lines_match(wanted: &[String], seen: &[String]) -> bool {
    let Some((first, rest)) = wanted.split_first() else { return seen.is_empty() };
    if first == ANY {
        return (0..=seen.len()).any(|skipped| lines_match(rest, &seen[skipped..]));
    }
    seen.split_first().is_some_and(|(line, more)| line_matches(first, line) && lines_match(rest, more))
}

fn line_matches(wanted: &str, line: &str) -> bool {
    let Some((begin, middle)) = wanted.split_once(ANY) else { return wanted == line };
    let Some(mut left) = line.strip_prefix(begin) else { return false };
    let mut parts: Vec<&str> = middle.split(ANY).collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match left.split_once(part) {
            Some((_, behind)) => left = behind,
            None => return false,
        }
    }
    left.ends_with(end)
}

#[test]
fn a_screen_is_as_the_page_shows_it_but_for_what_differs_each_time() {
    let page = "NODE  STATE\n1  ok  …\n…\n2  …, by node … 10.0.0.2:7700\n".lines().map(str::to_owned);
    let page: Vec<String> = page.collect();
    let same = |printed: &str| difference(&page, printed).is_none();
    assert!(same(
        "NODE   STATE\n1      ok     0.1 ms\n\nany\nlines\n2 4.1 s ago, by node 3  10.0.0.2:7700\n"
    ));
    assert!(same("NODE STATE\n1 ok x\n2 x, by node 3 10.0.0.2:7700"));
    for other in [
        "1 ok x\n2 x, by node 3 10.0.0.2:7700",
        "NODE STATE\n1 no x\n2 x, by node 3 10.0.0.2:7700",
        "NODE STATE\n1 ok x\n2 x by node 3 10.0.0.2:7700",
        "NODE STATE\n1 ok x\n2 x, by node 3 10.0.0.2:7701",
        "NODE STATE\n1 ok x\n2 x, by node 3 10.0.0.2:7700\nmore",
    ] {
        assert!(!same(other), "{other}");
    }
}
