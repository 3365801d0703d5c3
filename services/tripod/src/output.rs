//! Data goes to standard output, as JSON or as a table; everything else goes to standard error. Nothing leaves in another
//! way, so that what comes from clients reaches no terminal as an order: see `plain`.

mod colour;
mod plain;

use std::io::{self, IsTerminal as _, Write};

use clap::ValueEnum;
use serde::Serialize;

pub(crate) use colour::{Colour, wanted as wants_colours};
pub(crate) use plain::{lines, text};

/// Has a terminal begin at its top, with nothing below.
const CLEAR: &[u8] = b"\x1b[H\x1b[J";

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
}

/// Prints one value as one line of JSON, at once.
pub(crate) fn json(value: &impl Serialize) -> io::Result<()> {
    line(&json_text(value)?)
}

/// Prints JSON that a node has made.
pub(crate) fn json_line(json: &str) -> io::Result<()> {
    line(&plain::json(json))
}

/// One value as JSON for a file, which somebody may look at in a terminal.
pub(crate) fn json_text(value: &impl Serialize) -> io::Result<String> {
    let text = serde_json::to_string(value)?;
    Ok(plain::json(&text).into_owned())
}

/// Prints one line, or several, at once: a reader of a pipe waits for it.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let text = lines(text);
    writeln!(out, "{}", colour::shown(&text, colour::wanted(&out)))?;
    out.flush()
}

/// The same in the place of everything that a terminal shows.
pub(crate) fn screen(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        out.write_all(CLEAR)?;
    }
    drop(out);
    line(text)
}

/// Writes bytes for whom they are: as they are to a file or a pipe. A terminal is shown what they are made of, and its
/// prompt gets a line of its own.
pub(crate) fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        writeln!(out, "{}", lines(&String::from_utf8_lossy(bytes)))?;
    } else {
        out.write_all(bytes)?;
    }
    out.flush()
}

/// What a program that was started here writes to its standard error, as it is: it could write there itself.
pub(crate) fn of_program(bytes: &[u8]) {
    // If nobody reads there is nobody to tell; the program goes on.
    _ = io::stderr().lock().write_all(bytes);
}

/// Tells whoever looks on, by a line on standard error. Nobody need.
pub(crate) fn note(text: &str) {
    let mut err = io::stderr().lock();
    let text = colour::headed(&lines(text));
    // Where standard error is closed nobody looks on.
    _ = writeln!(err, "{}", colour::shown(&text, colour::wanted(&err)));
}

/// The same for programs: one value as one line of JSON.
pub(crate) fn note_json(value: &impl Serialize) {
    let text = serde_json::to_string(value).expect("what is told is plain data");
    _ = writeln!(io::stderr().lock(), "{}", plain::json(&text));
}

/// Columns, as wide as their widest cell.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    /// A row is one line, whatever its cells are made of.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells.into_iter().map(|cell| text(&cell).into_owned()).collect());
    }

    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_have_no_trailing_blanks() {
        let mut table = Table::new(&["ID", "STATE"]);
        table.row(vec!["1".into(), "ok".into()]);
        table.row(vec!["12345".into(), String::new()]);
        assert_eq!(table.render(), "ID     STATE\n1      ok\n12345");
    }

    #[test]
    fn json_for_a_file_is_no_order_to_whoever_looks_at_it() {
        assert_eq!(json_text(&"a\u{9b}b").expect("a text"), r#""a\u009bb""#);
    }

    #[test]
    fn a_cell_stays_in_its_row_and_columns_are_as_wide_as_what_is_shown() {
        let mut table = Table::new(&["ERROR", "ID"]);
        table.row(vec!["a\x1b[2J\nb".into(), "1".into()]);
        assert_eq!(table.render(), "ERROR          ID\na\\u{1b}[2J\\nb  1");
    }
}
