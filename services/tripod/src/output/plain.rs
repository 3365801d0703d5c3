//! What a terminal would take for an order is shown instead.
//!
//! Notes, names, reasons and errors come from clients. Raw, they could set the title of a terminal, clear what is above
//! them, hide what follows, or make a line that nobody wrote.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::colour;

/// Controls (ESC, DEL and those of one byte that stand for ESC and another one among them), separators of lines,
/// what changes the direction of letters, and our own marks of colours.
fn is_order(c: char) -> bool {
    c.is_control()
        || colour::is_mark(c)
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text within a line: whatever it is made of, it stays within it.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    escaped(text, is_order, |out, c| out.extend(c.escape_default()))
}

/// Lines of ours, with what was left in them: their ends, tabs and colours are meant.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    let is_meant = |c: char| c == '\n' || c == '\t' || colour::is_mark(c);
    escaped(text, |c| is_order(c) && !is_meant(c), |out, c| out.extend(c.escape_default()))
}

/// JSON as it is: of these characters a writer of JSON escapes those of ASCII only. They can stand in strings only, and
/// mean the same there in this form.
pub(super) fn json(text: &str) -> Cow<'_, str> {
    escaped(text, is_order, |out, c| {
        write!(out, "\\u{:04x}", u32::from(c)).expect("a text can be written to");
    })
}

fn escaped(text: &str, is_one: impl Fn(char) -> bool, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if !text.contains(&is_one) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_one(c) { escape(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A title that is set, a screen that is cleared, the same by one byte, letters turned around, and lines.
    const HOSTILE: &str = "a\x1b]0;x\x07\x1b[2J\u{9b}2J\u{202e}b\u{2028}c\x7f\r\nd\te";

    #[test]
    fn a_text_within_a_line_has_no_colour_of_its_own() {
        assert_eq!(text("\u{fdd1}x\u{fdd3}"), r"\u{fdd1}x\u{fdd3}");
        assert_eq!(lines("\u{fdd1}x\u{fdd3}"), "\u{fdd1}x\u{fdd3}");
    }

    #[test]
    fn every_order_is_shown() {
        let shown = r"a\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}2J\u{202e}b\u{2028}c\u{7f}\r\nd\te";
        assert_eq!(text(HOSTILE), shown);
        assert_eq!(
            lines(HOSTILE),
            r"a\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}2J\u{202e}b\u{2028}c\u{7f}\r".to_owned() + "\nd\te"
        );
    }

    #[test]
    fn letters_of_every_script_are_left_alone() {
        let ordinary = r"größe 数据 נתונים \x1b 🙂";
        assert!(matches!(text(ordinary), Cow::Borrowed(_)));
    }

    #[test]
    fn json_is_read_as_what_it_was() {
        let written = serde_json::to_string(HOSTILE).expect("JSON");
        let shown = json(&written);
        assert!(!shown.contains(is_order), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).expect("JSON"), HOSTILE);
    }
}
