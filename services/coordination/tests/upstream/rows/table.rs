//! The tables of `README.md`.
//!
//! A row is `| NAME | CELL |`, with upstream's name in backticks. A cell is a reason, or one or more tests
//! with ` · ` between them: `module::test` of this suite, or a file of the project and a name in it.

/// One row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The heading above the table.
    pub(super) suite: String,
    /// Upstream's name.
    pub(super) name: String,
    pub(super) shown: Vec<Shown>,
}

/// What stands for a test of upstream's.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// A test of this suite.
    Here(String),
    /// Something of that name in a file of the project.
    Elsewhere { file: String, name: String },
    /// Nothing, for a reason.
    NotApplicable(String),
}

/// Every row of the tables; or the first line that cannot be read, and what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    let mut suite = String::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            heading.clone_into(&mut suite);
        } else if line.starts_with('|') && !line.starts_with("| upstream ") && !line.starts_with("| check ") {
            if line.starts_with("|---") {
                continue;
            }
            let row =
                row(&suite, line).ok_or_else(|| format!("no row of a name and what shows it: {line}"))?;
            rows.push(row);
        }
    }
    Ok(rows)
}

fn row(suite: &str, line: &str) -> Option<Row> {
    let (name, cell) = line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | ")?;
    let shown = match cell.strip_prefix("not applicable: ") {
        Some(reason) => vec![Shown::NotApplicable(reason.to_owned())],
        None => cell.split(" · ").map(shown).collect::<Option<_>>()?,
    };
    Some(Row { suite: suite.to_owned(), name: name.to_owned(), shown })
}

fn shown(text: &str) -> Option<Shown> {
    let inner = text.strip_prefix('`')?.strip_suffix('`')?;
    match inner.split_once("`: `") {
        Some((file, name)) => Some(Shown::Elsewhere { file: file.to_owned(), name: name.to_owned() }),
        None => Some(Shown::Here(inner.to_owned())).filter(|_| inner.contains("::")),
    }
}
