//! A report as people read it.

use super::{Machine, Outage, Report, Verdict};
use crate::check::{Checked, Conclusion};
use crate::history::Micros;

impl Report {
    /// The whole report.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}, seed {}\n\n**{}**\n", self.scenario, self.seed, self.verdict);
        self.what_to_do(&mut text);
        self.about(&mut text);
        self.faults(&mut text);
        self.operations(&mut text);
        self.figures(&mut text);
        self.checks(&mut text);
        text
    }

    /// What somebody does with a run that did not pass.
    fn what_to_do(&self, text: &mut String) {
        if self.verdict == Verdict::Passed {
            return;
        }
        if !self.reproduce.is_empty() {
            put(text, &format!("\nTo do the same again:\n\n    {}\n", self.reproduce));
        }
        if !self.frozen.is_empty() {
            put(text, "\nKept as they were:\n\n");
            for path in &self.frozen {
                put(text, &format!("* `{path}`\n"));
            }
        }
    }

    fn about(&self, text: &mut String) {
        put(text, "\n| | |\n|---|---|\n");
        let (duration, wall) = (seconds(self.duration_us), seconds(self.wall_us));
        put(text, &format!("| Duration | {duration} of the run's clock, {wall} on the wall |\n"));
        put(text, &format!("| Longest unavailability | {} |\n", outage(self.outage)));
        put(text, &format!("| Version | {} |\n", self.version));
        put(text, &format!("| Machine | {} |\n", machine(&self.machine)));
    }

    fn faults(&self, text: &mut String) {
        if self.faults.is_empty() {
            put(text, "\nNo fault was injected.\n");
            return;
        }
        put(text, "\n| Fault | Times |\n|---|---:|\n");
        for (kind, count) in &self.faults {
            put(text, &format!("| {kind} | {count} |\n"));
        }
    }

    fn operations(&self, text: &mut String) {
        put(text, "\n| Operation | ok | failed | unknown |\n|---|---:|---:|---:|\n");
        for (kind, count) in &self.operations {
            put(text, &format!("| {kind} | {} | {} | {} |\n", count.ok, count.fail, count.unknown));
        }
    }

    fn figures(&self, text: &mut String) {
        if self.figures.is_empty() {
            return;
        }
        put(text, "\n| Figure | |\n|---|---|\n");
        for (what, figure) in &self.figures {
            put(text, &format!("| {what} | {} |\n", cell(figure)));
        }
    }

    fn checks(&self, text: &mut String) {
        put(text, "\n| Checker | Looked at | Says |\n|---|---:|---|\n");
        for check in &self.checks {
            put(text, &format!("| {} | {} | {} |\n", check.checker, check.examined, says(check)));
        }
        for violation in self.checks.iter().flat_map(Checked::violations) {
            let (rule, subject) = (&violation.rule, &violation.subject);
            put(text, &format!("\n## {rule}: {subject}\n\n{}\n", violation.explanation));
            if !violation.evidence.is_empty() {
                put(text, "\n");
            }
            for line in &violation.evidence {
                put(text, &format!("* {line}\n"));
            }
        }
    }
}

/// What a checker says, in a table cell.
fn says(check: &Checked) -> String {
    match &check.conclusion {
        Conclusion::Held if check.examined == 0 => "nothing to look at".to_owned(),
        Conclusion::Held => "held".to_owned(),
        Conclusion::Violated { total: 1, .. } => "**violated once**".to_owned(),
        Conclusion::Violated { total, .. } => format!("**violated {total} times**"),
        Conclusion::Undecided(reason) => format!("undecided: {}", cell(reason)),
        Conclusion::Void(reason) => format!("void: {}", cell(reason)),
    }
}

/// One line of a table cannot hold a line break or a bar.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

pub(super) fn outage(outage: Option<Outage>) -> String {
    match outage {
        None => "nobody wrote".to_owned(),
        Some(outage) => {
            format!("{} from {} on", seconds(outage.length_us), seconds(outage.from_us))
        }
    }
}

pub(super) fn seconds(length: Micros) -> String {
    format!("{:.2} s", length.as_secs_f64())
}

fn machine(machine: &Machine) -> String {
    let kernel = if machine.kernel.is_empty() { "unknown" } else { &machine.kernel };
    format!("{} cores, kernel {kernel}", machine.cores)
}

pub(super) fn put(text: &mut String, more: &str) {
    text.push_str(more);
}
