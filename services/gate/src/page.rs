//! The table as documentation has it, made from the rows themselves.

use std::fmt::Write as _;

use crate::{Check, Checks, Port, Right, Role, Row, Rpc, row};

/// A line of the table: methods of one service that have the same row.
struct Line {
    service: &'static str,
    methods: Vec<&'static str>,
    letters: String,
    checks: String,
    after: &'static str,
}

impl Line {
    fn is_like(&self, other: &Self) -> bool {
        let key = |line: &Self| (line.service, line.letters.clone(), line.checks.clone(), line.after);
        key(self) == key(other)
    }
}

/// The table of Markdown: for each port its services, and for each of them methods that have the same row in one line.
#[must_use]
pub fn table() -> String {
    let mut out = String::new();
    for port in Port::ALL {
        let _ = writeln!(out, "### The {} port\n", port.word());
        let heads: Vec<String> = Role::ALL.iter().map(|role| role.letter().to_string()).collect();
        let _ = writeln!(out, "| service | RPCs | {} | checked later | chosen after |", heads.join(" | "));
        let _ = writeln!(out, "|---|---|{}---|---|", "---|".repeat(heads.len()));
        for Line { service, methods, letters, checks, after } in lines(port) {
            let methods: Vec<String> = methods.iter().map(|method| format!("`{method}`")).collect();
            let (methods, letters) = (methods.join(" "), letters.replace(' ', " | "));
            let _ = writeln!(out, "| `{service}` | {methods} | {letters} | {checks} | {after} |");
        }
        out.push('\n');
    }
    out
}

/// What each check means, as a table of Markdown.
#[must_use]
pub fn checks() -> String {
    let mut out = String::from("| check | what is checked |\n|---|---|\n");
    for check in Check::ALL {
        let _ = writeln!(out, "| `{}` | {} |", check.word(), check.meaning());
    }
    out
}

fn lines(port: Port) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for rpc in Rpc::ALL.iter().filter(|rpc| port.serves(**rpc)) {
        let row = row(*rpc);
        let everybody = if row.is_for_everybody() { "(everybody)" } else { "" };
        let line = Line {
            service: rpc.service(),
            methods: vec![rpc.method()],
            letters: row.letters(port),
            checks: format!("{everybody}{}", names(checks_of(&row, port))),
            after: row.chosen_after().unwrap_or_default(),
        };
        match lines.iter().position(|other| other.is_like(&line)) {
            Some(place) => lines[place].methods.extend(line.methods),
            None => lines.push(line),
        }
    }
    lines
}

/// What anybody has to pass there whom the row lets through.
fn checks_of(row: &Row, port: Port) -> Checks {
    let of_role = |role: Role| match row.right(role, port) {
        Right::No => Checks::NONE,
        right => row.checks(role, right),
    };
    Role::ALL.into_iter().map(of_role).flat_map(Checks::iter).fold(Checks::NONE, Checks::and)
}

fn names(checks: Checks) -> String {
    let names: Vec<String> = checks.iter().map(|check| format!("`{}`", check.word())).collect();
    names.join(" ")
}
