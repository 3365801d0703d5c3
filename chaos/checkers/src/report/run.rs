//! The report of one run.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::check::Checked;
use crate::history::{History, Micros, Outcome};

use super::timeline::timeline;
use super::{Bound, Episode, Machine, Outage, Program, Verdict};

/// What a run did and found. Its JSON is for programs, its Markdown for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Of this document, raised when a field changes its meaning.
    pub format: u32,
    pub scenario: String,
    pub seed: u64,
    /// How long the run took, in microseconds of its own clock: simulated time in a simulation.
    pub duration_us: Micros,
    /// How long it took by the clock on the wall, in microseconds, to add up machine hours.
    pub wall_us: Micros,
    /// Of the program under test.
    pub version: String,
    /// Its file.
    #[serde(default)]
    pub program: Program,
    pub machine: Machine,
    /// Faults by kind.
    pub faults: BTreeMap<String, u64>,
    /// Faults of the plan that had nobody to hit, such as a leader where there was none, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped: BTreeMap<String, u64>,
    /// Faults one by one, in the order in which they began: the 200 with the longest times without service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Episode>,
    /// Times without an acknowledged write while clients asked for one, in the order in which they began: the 200
    /// longest of those of a tenth of a second and more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Operations by kind of call.
    pub operations: BTreeMap<String, Outcomes>,
    /// The longest time without an acknowledged write while clients asked for one.
    pub outage: Option<Outage>,
    pub checks: Vec<Checked>,
    /// What had to happen within which time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Bound>,
    /// What was measured and is judged by nobody, in words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, String>,
    pub verdict: Verdict,
    /// The command that does the same again.
    pub reproduce: String,
    /// Where the data directories and the history of a failed run are kept.
    pub frozen: Vec<String>,
}

/// Operations by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    pub ok: u64,
    pub fail: u64,
    pub unknown: u64,
}

/// What a report says besides what is in the history.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// Of the program under test.
    pub version: String,
    pub program: Program,
    /// Faults that had nobody to hit, by kind.
    pub skipped: BTreeMap<String, u64>,
    pub bounds: Vec<Bound>,
    pub duration: Micros,
    pub wall: Micros,
    pub reproduce: String,
    pub frozen: Vec<String>,
    pub figures: BTreeMap<String, String>,
}

/// The picture beside a report.
pub const TIMELINE: &str = "timeline.svg";

/// The format that this code writes.
pub const FORMAT: u32 = 1;

impl Report {
    /// Sums up a history and what the checkers said about it.
    #[must_use]
    pub fn new(history: &History, checks: Vec<Checked>, about: About) -> Self {
        let mut faults = BTreeMap::new();
        for fault in &history.faults {
            *faults.entry(fault.kind.clone()).or_default() += 1;
        }
        let mut operations: BTreeMap<String, Outcomes> = BTreeMap::new();
        for operation in &history.operations {
            operations.entry(operation.call.kind().to_owned()).or_default().count(&operation.outcome);
        }
        let verdict = Verdict::of(&checks, history.void.as_deref());
        Self {
            format: FORMAT,
            scenario: history.header.scenario.clone(),
            seed: history.header.seed,
            duration_us: about.duration,
            wall_us: about.wall,
            version: about.version,
            program: about.program,
            machine: Machine::here(),
            faults,
            skipped: about.skipped,
            timeline: timeline(history),
            outages: Outage::shown(history),
            operations,
            outage: Outage::longest(history),
            checks,
            bounds: about.bounds,
            figures: about.figures,
            verdict,
            reproduce: about.reproduce,
            frozen: about.frozen,
        }
    }

    /// Writes `report.json`, `report.md` and `timeline.svg` into a directory that exists.
    ///
    /// # Errors
    /// When one of them cannot be written.
    pub fn save(&self, directory: &Path) -> anyhow::Result<()> {
        let json = serde_json::to_string_pretty(self)?;
        let picture = format!("\n![Faults, and times without an acknowledged write]({TIMELINE})\n");
        let files = [
            ("report.json", json + "\n"),
            ("report.md", self.markdown() + &picture),
            (TIMELINE, self.picture()),
        ];
        for (name, text) in files {
            let path = directory.join(name);
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// Reads a `report.json`.
    ///
    /// # Errors
    /// When it cannot be read, or has a format that this code does not know.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let report: Self =
            serde_json::from_str(&text).with_context(|| format!("{} is no report", path.display()))?;
        anyhow::ensure!(
            report.format == FORMAT,
            "{} has format {}, and only {FORMAT} is known here",
            path.display(),
            report.format
        );
        Ok(report)
    }
}

impl Outcomes {
    fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Ok(_) => self.ok += 1,
            Outcome::Fail(_) => self.fail += 1,
            Outcome::Unknown(_) => self.unknown += 1,
        }
    }

    /// Adds another count.
    pub(super) fn add(&mut self, other: Self) {
        self.ok += other.ok;
        self.fail += other.fail;
        self.unknown += other.unknown;
    }
}
