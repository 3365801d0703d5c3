//! Colours, for terminals only. What is to be coloured is put between marks, which become orders to the terminal after
//! everything else has lost its own, or go away where nobody would see the colour.

use std::borrow::Cow;
use std::io::IsTerminal;

/// Begin a colour; Unicode keeps these characters for use within a program, and no text has them.
const MARKS: [(char, &str); 3] =
    [('\u{fdd0}', "\x1b[32m"), ('\u{fdd1}', "\x1b[1;31m"), ('\u{fdd2}', "\x1b[33m")];
/// Ends each of them.
const END: (char, &str) = ('\u{fdd3}', "\x1b[0m");
/// What notes begin with that somebody should see.
const HEADS: [(&str, Colour); 2] = [("error:", Colour::Bad), ("warning:", Colour::Doubtful)];

/// What a part of a text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Green.
    Good,
    /// Red.
    Bad,
    /// Yellow.
    Doubtful,
}

impl Colour {
    /// `text` in this colour, once it is printed as lines.
    pub(crate) fn of(self, text: &str) -> String {
        let (mark, _) = MARKS[self as usize];
        format!("{mark}{text}{}", END.0)
    }
}

pub(super) fn is_mark(c: char) -> bool {
    c == END.0 || MARKS.iter().any(|(mark, _)| *mark == c)
}

/// Whether colours are to be written there: a terminal that has them, for somebody who has not declined
/// (<https://no-color.org>).
pub(crate) fn wanted(stream: &impl IsTerminal) -> bool {
    let says = |name| std::env::var_os(name).unwrap_or_default();
    stream.is_terminal() && says("NO_COLOR").is_empty() && says("TERM") != "dumb"
}

/// `text` with its marks as orders, or without them.
pub(super) fn shown(text: &str, colours: bool) -> Cow<'_, str> {
    if !text.contains(is_mark) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match MARKS.iter().chain([&END]).find(|(mark, _)| *mark == c) {
            Some((_, order)) if colours => out.push_str(order),
            Some(_) => {}
            None => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A note whose first word is coloured by what it says.
pub(super) fn headed(note: &str) -> String {
    let head = HEADS.iter().find_map(|(head, colour)| Some((head, colour, note.strip_prefix(head)?)));
    head.map_or_else(|| note.to_owned(), |(head, colour, rest)| format!("{}{rest}", colour.of(head)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n31_colours_are_orders_on_a_terminal_and_nothing_elsewhere() {
        let text = format!("a {} b", Colour::Good.of("healthy"));
        assert_eq!(shown(&text, true), "a \x1b[32mhealthy\x1b[0m b");
        assert_eq!(shown(&text, false), "a healthy b");
        assert_eq!(shown(&headed("error: T1"), true), "\x1b[1;31merror:\x1b[0m T1");
        assert_eq!(shown(&headed("warning: x"), true), "\x1b[33mwarning:\x1b[0m x");
        assert_eq!(headed("node 1 started, error: none"), "node 1 started, error: none");
    }
}
