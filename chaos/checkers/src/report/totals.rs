//! The sum of many runs, as the project publishes it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::markdown::{put, seconds};
use super::{Outcomes, Report, Verdict};
use crate::history::Micros;

/// Kinds of faults that belong together, by how their names begin.
const FAMILIES: [(&str, &str); 7] = [
    ("kill-", "process kills"),
    ("terminate-", "planned stops"),
    ("pause-", "pauses"),
    ("partition-", "partitions"),
    ("power-cut", "power cuts"),
    ("bit-flip", "bit flips"),
    ("", "others"),
];

/// What many runs did and found together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// By scenario.
    pub scenarios: BTreeMap<String, Scenario>,
    /// By kind.
    pub faults: BTreeMap<String, u64>,
    pub operations: BTreeMap<String, Outcomes>,
    /// Operations that each checker looked at, in runs that count.
    pub examined: BTreeMap<String, u64>,
    /// Of all programs under test.
    pub versions: BTreeSet<String>,
}

/// The runs of one scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scenario {
    pub runs: u64,
    pub passed: u64,
    pub violated: u64,
    pub undecided: u64,
    /// Runs that prove nothing. Their faults and operations are not counted.
    pub void: u64,
    /// In microseconds of the runs' own clocks, without void runs.
    pub duration_us: Micros,
    /// In microseconds on the wall, without void runs.
    pub wall_us: Micros,
    /// In microseconds, of the run where it was longest.
    pub longest_outage_us: Micros,
    /// The lowest and the highest seed.
    pub seeds: Option<(u64, u64)>,
}

impl Totals {
    /// Adds a run. Of a run that is void only that is counted.
    pub fn add(&mut self, report: &Report) {
        let scenario = self.scenarios.entry(report.scenario.clone()).or_default();
        scenario.runs += 1;
        match report.verdict {
            Verdict::Passed => scenario.passed += 1,
            Verdict::Violated { .. } => scenario.violated += 1,
            Verdict::Undecided(_) => scenario.undecided += 1,
            Verdict::Void(_) => {
                scenario.void += 1;
                return;
            }
        }
        scenario.duration_us = scenario.duration_us.plus(report.duration_us);
        scenario.wall_us = scenario.wall_us.plus(report.wall_us);
        let outage = report.outage.map_or(Micros(0), |outage| outage.length_us);
        scenario.longest_outage_us = scenario.longest_outage_us.max(outage);
        scenario.include(report.seed, report.seed);
        for (kind, count) in &report.faults {
            *self.faults.entry(kind.clone()).or_default() += count;
        }
        for (kind, outcomes) in &report.operations {
            self.operations.entry(kind.clone()).or_default().add(*outcomes);
        }
        for check in &report.checks {
            *self.examined.entry(check.checker.clone()).or_default() += check.examined;
        }
        self.versions.insert(report.version.clone());
    }

    /// Adds other totals, such as those of another machine.
    pub fn merge(&mut self, other: &Self) {
        for (name, theirs) in &other.scenarios {
            let ours = self.scenarios.entry(name.clone()).or_default();
            ours.runs += theirs.runs;
            ours.passed += theirs.passed;
            ours.violated += theirs.violated;
            ours.undecided += theirs.undecided;
            ours.void += theirs.void;
            ours.duration_us = ours.duration_us.plus(theirs.duration_us);
            ours.wall_us = ours.wall_us.plus(theirs.wall_us);
            ours.longest_outage_us = ours.longest_outage_us.max(theirs.longest_outage_us);
            if let Some((first, last)) = theirs.seeds {
                ours.include(first, last);
            }
        }
        for (kind, count) in &other.faults {
            *self.faults.entry(kind.clone()).or_default() += count;
        }
        for (kind, outcomes) in &other.operations {
            self.operations.entry(kind.clone()).or_default().add(*outcomes);
        }
        for (checker, count) in &other.examined {
            *self.examined.entry(checker.clone()).or_default() += count;
        }
        self.versions.extend(other.versions.iter().cloned());
    }

    /// Faults by family: kills of any node are one, for example. Families without faults are left out. A fault
    /// that hits all nodes at once is one fault.
    #[must_use]
    pub fn families(&self) -> Vec<(&'static str, u64)> {
        let family = |kind: &str| FAMILIES.iter().position(|(begin, _)| kind.starts_with(begin));
        let mut counts = [0; FAMILIES.len()];
        for (kind, count) in &self.faults {
            counts[family(kind).unwrap_or(FAMILIES.len() - 1)] += count;
        }
        let named = FAMILIES.iter().zip(counts).map(|((_, name), count)| (*name, count));
        named.filter(|(_, count)| *count > 0).collect()
    }

    /// Tables, without a heading of their own.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "| Scenario | Runs | Seeds | Passed | Violated | Undecided | Void | Time of its clock | Machine \
            hours | Longest unavailability |\n|---|---:|---|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for (name, scenario) in &self.scenarios {
            let Scenario { runs, passed, violated, undecided, void, .. } = scenario;
            let seeds =
                scenario.seeds.map_or("none".to_owned(), |(first, last)| format!("{first} to {last}"));
            let hours = scenario.wall_us.as_secs_f64() / 3_600.0;
            let (duration, outage) = (seconds(scenario.duration_us), seconds(scenario.longest_outage_us));
            put(
                &mut text,
                &format!(
                    "| {name} | {runs} | {seeds} | {passed} | {violated} | {undecided} | {void} | {duration} \
                    | {hours:.2} | {outage} |\n"
                ),
            );
        }
        put(&mut text, "\n| Faults | Times |\n|---|---:|\n");
        for (family, count) in self.families() {
            put(&mut text, &format!("| {family} | {count} |\n"));
        }
        put(&mut text, "\n| Fault | Times |\n|---|---:|\n");
        for (kind, count) in &self.faults {
            put(&mut text, &format!("| {kind} | {count} |\n"));
        }
        put(&mut text, "\n| Operation | ok | failed | unknown |\n|---|---:|---:|---:|\n");
        for (kind, Outcomes { ok, fail, unknown }) in &self.operations {
            put(&mut text, &format!("| {kind} | {ok} | {fail} | {unknown} |\n"));
        }
        put(&mut text, "\n| Checker | Looked at |\n|---|---:|\n");
        for (checker, count) in &self.examined {
            put(&mut text, &format!("| {checker} | {count} |\n"));
        }
        text
    }
}

impl Scenario {
    fn include(&mut self, first: u64, last: u64) {
        let (lowest, highest) = self.seeds.unwrap_or((first, last));
        self.seeds = Some((lowest.min(first), highest.max(last)));
    }
}
