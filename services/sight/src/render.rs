//! For people: the answer first, then who, then what to do; few lines for any job.

use crate::facts::{Facts, Place};
use crate::finding::{Diagnosis, Finding};
use crate::words::{age, clock, ranges};

/// Lines that are printed unless all are asked for.
const LINES_MAX: usize = 24;
/// Where the cause stands behind the answer.
const COLUMN: usize = 94;
/// Labels are as wide.
const LABEL: usize = 8;

impl Diagnosis<'_> {
    /// Whether something is wrong.
    #[must_use]
    pub fn found(&self) -> bool {
        !self.findings.is_empty()
    }

    /// The text, without a line break at its end.
    #[must_use]
    pub fn render(&self, all: bool) -> String {
        let mut lines = Vec::new();
        match self.findings.first() {
            None => lines.push(well(self.facts)),
            Some(first) => lines.push(answer(first)),
        }
        lines.push(head(self.facts));
        if let Some(first) = self.findings.first() {
            lines.extend(body(first));
        }
        for finding in self.findings.iter().skip(1) {
            lines.push(answer(finding));
            lines.extend(body(finding));
        }
        lines.extend(self.cluster());
        lines.extend(self.remarks());
        if !all && lines.len() > LINES_MAX {
            let more = lines.len() - (LINES_MAX - 1);
            lines.truncate(LINES_MAX - 1);
            lines.push(format!("... {more} more lines: --all"));
        }
        lines.join("\n")
    }

    /// Only if something is to be said of it.
    fn cluster(&self) -> Option<String> {
        let members = self.facts.cluster.nodes.len();
        (members > 0 && !self.safety.change_safe).then(|| labelled("cluster", &self.safety.line()))
    }

    fn remarks(&self) -> Vec<String> {
        let facts = self.facts;
        let mut lines = Vec::new();
        if facts.memory.is_none() && !facts.ages_told {
            lines.push(labelled("beats", "the leader does not say when it heard the tasks"));
        }
        if facts.places_left_out > 0 {
            let text = format!("{} more, opened later, were not looked at", facts.places_left_out);
            lines.push(labelled("places", &text));
        }
        if facts.of_nobody > 0 {
            lines.push(labelled(
                "calls",
                &format!("{} wait of which nobody knows whose they are", facts.of_nobody),
            ));
        }
        if facts.not_entered > 0 {
            lines.push(labelled(
                "calls",
                &format!("{} wait that were not entered for want of room", facts.not_entered),
            ));
        }
        lines
    }
}

fn answer(finding: &Finding) -> String {
    let text = format!("{}: {}", finding.code.name(), finding.text);
    let cause = format!("{}, {}", finding.place.phrase(), finding.sure.word());
    format!("{text:<COLUMN$}  {cause}")
}

fn body(finding: &Finding) -> Vec<String> {
    let mut lines: Vec<String> = finding.lines.iter().map(|(label, text)| labelled(label, text)).collect();
    if !finding.next.is_empty() {
        lines.push(format!("next: {}", finding.next.join("; ")));
    }
    lines
}

fn labelled(label: &str, text: &str) -> String {
    format!("  {label:<LABEL$} {text}")
}

/// The sentence of a job of which nothing is wrong here.
fn well(facts: &Facts) -> String {
    let waiting = facts.places.iter().filter(|place| place.arrived_count > 0);
    match waiting.max_by_key(|place| facts.waited_ms(place)) {
        None => {
            "nobody waits at the coordinator; if the job hangs, then in a collective or in data, not here"
                .to_owned()
        }
        Some(place) => format!(
            "nothing is wrong: {} of {} have come to {} within {}, and nobody has waited long enough to blame another",
            place.arrived_count,
            place.arrived_count.saturating_add(place.missing_count),
            place.called(),
            age(facts.waited_ms(place))
        ),
    }
}

fn head(facts: &Facts) -> String {
    let noun = if facts.tasks.len() == 1 { "task" } else { "tasks" };
    let place = facts.places.iter().filter(|place| place.arrived_count > 0);
    let place = place.max_by_key(|place| facts.waited_ms(place)).map(|place| at(facts, place));
    let place = place.unwrap_or_default();
    format!("job {} {} {noun}{}{place}", facts.job.name, facts.tasks.len(), standings(facts))
}

/// How many stand where, if not all are connected.
fn standings(facts: &Facts) -> String {
    let mut text = String::new();
    for standing in crate::Standing::ALL {
        let count = facts.tasks.iter().filter(|task| task.standing == standing).count();
        if count > 0 {
            text.push_str(&format!("  {} {count}", standing.word()));
        }
    }
    text
}

fn at(facts: &Facts, place: &Place) -> String {
    let waited = age(facts.waited_ms(place));
    let of = place.timeout_ms.map_or_else(String::new, |timeout| format!(" of {}", age(timeout)));
    let since = place.opened_ms.map_or_else(String::new, |opened| format!(" since {}", clock(opened)));
    let named = if place.missing_count > 0 && !place.missing.is_empty() {
        format!("  missing {}", ranges(&place.missing))
    } else {
        String::new()
    };
    format!("  {}{since} ({waited}{of})  arrived {}{named}", place.called(), place.arrived_count)
}
