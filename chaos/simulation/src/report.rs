//! What came of one seed.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::judged::Judged;
use super::observation::{SimTime, Violation};
use super::run::bounds;
use tripod_checkers::report::Outcomes;

/// What a simulation did and found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedReport {
    pub seed: u64,
    pub nodes: usize,
    /// No rule was broken and the harness made no mistake.
    pub passed: bool,
    pub violations: Vec<Violation>,
    /// Why the run proves nothing, if the harness made a mistake or a checker did not come to an end.
    pub void: Option<String>,
    /// Of the event log: equal for two runs of one seed.
    pub hash: u64,
    pub events: u64,
    pub simulated_ms: u64,
    pub wall_ms: u64,
    /// Faults by kind.
    pub faults: BTreeMap<String, u64>,
    /// Operations by kind of call.
    pub operations: BTreeMap<String, Outcomes>,
    /// The longest time without an acknowledged write while clients asked for one.
    pub longest_unavailability_ms: u64,
    /// Snapshots that lay below the end of the log in the end, and other things that were counted.
    pub counts: BTreeMap<String, u64>,
    pub judged: Judged,
    /// The event log, if it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
}

impl SeedReport {
    /// A report of a run that ended with a panic.
    #[must_use]
    pub fn of_panic(seed: u64, what: String) -> Self {
        let violation = Violation { rule: "no panic".into(), at_ms: 0, what };
        Self {
            seed,
            nodes: 0,
            passed: false,
            violations: vec![violation],
            void: None,
            hash: 0,
            events: 0,
            simulated_ms: 0,
            wall_ms: 0,
            faults: BTreeMap::new(),
            operations: BTreeMap::new(),
            longest_unavailability_ms: 0,
            counts: BTreeMap::new(),
            judged: Judged::default(),
            lines: Vec::new(),
        }
    }
}

impl fmt::Display for SeedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match (&self.void, self.passed) {
            (Some(why), _) => format!("void ({why})"),
            (None, true) => "passed".to_owned(),
            (None, false) => "VIOLATED".to_owned(),
        };
        let sum = |of: fn(&Outcomes) -> u64| self.operations.values().map(of).sum::<u64>();
        writeln!(
            f,
            "seed {}: {verdict}; {} nodes, {} simulated in {} ms, hash {:016x} of {} events",
            self.seed,
            self.nodes,
            SimTime(self.simulated_ms),
            self.wall_ms,
            self.hash,
            self.events
        )?;
        writeln!(
            f,
            "  operations: {} ok, {} failed, {} unknown; longest time without an acknowledged write {} ms",
            sum(|outcomes| outcomes.ok),
            sum(|outcomes| outcomes.fail),
            sum(|outcomes| outcomes.unknown),
            self.longest_unavailability_ms
        )?;
        let counted = |counts: &BTreeMap<String, u64>| {
            counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
        };
        writeln!(f, "  faults: {}", counted(&self.faults))?;
        writeln!(f, "  {}", bounds())?;
        writeln!(f, "  seen: {}; judged: {:?}", counted(&self.counts), self.judged)?;
        for violation in &self.violations {
            writeln!(f, "  {violation}")?;
        }
        Ok(())
    }
}
