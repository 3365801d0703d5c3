//! A report as people read it.

use super::promise::promise;
use super::{Bound, Episode, Machine, Outage, Outcomes, Report, TIMELINE_MAX, Verdict};
use crate::check::{Checked, Conclusion};
use crate::history::Micros;

/// Stands behind the number of calls that were not answered.
const UNKNOWN: &str = "they were not answered in time, so they may have taken effect then, later or never. That breaks \
                       no promise, and the checkers allow all three: such a call proves less, and nothing wrong. \
                       Clients call again when a call was given up, so one time without a leader makes many, most of \
                       them of the calls that come most often, such as heartbeats.";

/// Stands behind the number of cases.
const NO_CASE: &str = "A violation would have been 1 of them that breaks the promise of its line, at any time and under \
                       any fault: 0 may. What each checker does, case by case, is in docs/reliability.md.";

/// Stands before the bounds.
const NO_BOUND: &str = "Liveness: while faults are injected, no time without service is a violation by itself: nodes that are \
                        killed, stopped or cut off together leave no majority, and nobody could serve. What was \
                        acknowledged is judged all the same. A violation would have been whatever took longer than:";

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
        put(text, &format!("| Longest unavailability | {}{} |\n", outage(self.outage), self.meanwhile()));
        put(text, &format!("| Command | `{}` |\n", cell(&self.reproduce)));
        put(text, &format!("| Version | {} |\n", self.version));
        put(text, &format!("| Program | {} |\n", cell(&self.program.words())));
        put(text, &format!("| Machine | {} |\n", machine(&self.machine)));
    }

    /// Which faults the longest time without service fell into.
    fn meanwhile(&self) -> String {
        let Some(outage) = self.outage else { return String::new() };
        let during = self.timeline.iter().filter(|episode| episode.outage == Some(outage));
        let kinds: Vec<&str> = during.map(|episode| episode.kind.as_str()).collect();
        if kinds.is_empty() {
            ", without a fault".to_owned()
        } else {
            format!(", during {}", kinds.join(", "))
        }
    }

    fn faults(&self, text: &mut String) {
        if self.faults.is_empty() {
            put(text, "\nNo fault was injected.\n");
        } else {
            put(text, "\n| Fault | Times |\n|---|---:|\n");
        }
        for (kind, count) in &self.faults {
            put(text, &format!("| {kind} | {count} |\n"));
        }
        if !self.skipped.is_empty() {
            let kinds: Vec<String> =
                self.skipped.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
            let total: u64 = self.skipped.values().sum();
            put(text, &format!("\n{total} more had nobody to hit: {}.\n", kinds.join(", ")));
        }
        self.one_by_one(text);
    }

    fn one_by_one(&self, text: &mut String) {
        if self.timeline.is_empty() {
            return;
        }
        if self.faults.values().sum::<u64>() > TIMELINE_MAX as u64 {
            put(text, &format!("\nThe {TIMELINE_MAX} faults with the longest unavailability:\n"));
        }
        put(text, "\n| At | Fault | Whom | Planned | Lasted | Unavailable meanwhile |\n");
        put(text, "|---:|---|---|---:|---:|---|\n");
        for episode in &self.timeline {
            let Episode { kind, target, from_us, .. } = episode;
            let lasted = episode.length_us.map_or_else(|| "not healed".to_owned(), seconds);
            let planned = episode.planned_us.map_or_else(|| "no plan".to_owned(), seconds);
            let (from, target, unavailable) = (seconds(*from_us), cell(target), outage(episode.outage));
            put(text, &format!("| {from} | {kind} | {target} | {planned} | {lasted} | {unavailable} |\n"));
        }
    }

    fn operations(&self, text: &mut String) {
        put(text, "\n| Operation | ok | failed | unknown |\n|---|---:|---:|---:|\n");
        for (kind, count) in &self.operations {
            put(text, &format!("| {kind} | {} | {} | {} |\n", count.ok, count.fail, count.unknown));
        }
        let sum = |of: fn(&Outcomes) -> u64| self.operations.values().map(of).sum::<u64>();
        let (unknown, calls) =
            (sum(|count| count.unknown), sum(|count| count.ok + count.fail + count.unknown));
        if unknown > 0 {
            put(text, &format!("\n`unknown` are {unknown} of {calls} calls: {UNKNOWN}\n"));
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
        put(text, "\n| Checker | Looked at | Says | Promise |\n|---|---:|---|---|\n");
        for check in &self.checks {
            let (checker, says, promise) = (&check.checker, says(check), promise(&check.checker));
            put(text, &format!("| {checker} | {} | {says} | {promise} |\n", check.examined));
        }
        self.safety(text);
        self.bounds(text);
        self.violations(text);
    }

    /// What would have been a violation at any time.
    fn safety(&self, text: &mut String) {
        let looked_at = self.checks.iter().filter(|check| check.examined > 0);
        let (checkers, cases) =
            looked_at.fold((0u64, 0u64), |(checkers, cases), check| (checkers + 1, cases + check.examined));
        if checkers > 0 {
            put(text, &format!("\nSafety: {checkers} checkers looked at {cases} cases. {NO_CASE}\n"));
        }
    }

    /// What would have been a violation, had it taken longer.
    fn bounds(&self, text: &mut String) {
        if self.bounds.is_empty() {
            return;
        }
        put(text, &format!("\n{NO_BOUND}\n\n| What must happen | Within |\n|---|---:|\n"));
        for Bound { what, within_us } in &self.bounds {
            put(text, &format!("| {} | {} |\n", cell(what), seconds(*within_us)));
        }
    }

    fn violations(&self, text: &mut String) {
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
