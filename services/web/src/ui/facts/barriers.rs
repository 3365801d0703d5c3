//! Barriers of a job: who has come, who has not, and which failed lately.

use serde::Serialize;
use tripod_state::barrier::{Gathering, Report, What};

use crate::ui::facts::{RANGES_MAX, ranges};

/// Open barriers that are shown.
pub(crate) const BARRIERS_SHOWN_MAX: usize = 32;

/// A barrier at which somebody waits, or waited until it failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Barrier {
    pub(crate) name: String,
    pub(crate) instance: i64,
    pub(crate) opened_ms: Option<u64>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) arrived: u32,
    pub(crate) missing: u32,
    /// Who is missing, in ranges, and how many of them are not in these.
    pub(crate) missing_tasks: String,
    pub(crate) missing_unnamed: u64,
    /// Of one that failed: when, by the log's time, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failed_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

/// What its name is in a sentence.
pub(crate) fn name_of(what: &What) -> String {
    match what {
        What::Registration => "the registration".to_owned(),
        What::Shutdown => "the shutdown".to_owned(),
        What::Devices => "the exchange of devices".to_owned(),
        What::Called(name) => format!("barrier `{}`", name.as_str()),
        What::CalledInRuntime(id) => format!("barrier `{}`", String::from_utf8_lossy(&id.0)),
    }
}

/// One at which tasks wait.
pub(crate) fn open(gathering: &Gathering) -> Barrier {
    let (missing_tasks, _) = ranges(gathering.missing.iter().copied(), RANGES_MAX);
    with(&gathering.report, missing_tasks)
}

/// One that failed.
pub(crate) fn failed(report: &Report) -> Barrier {
    let (missing_tasks, _) = ranges(report.missing.first.iter().copied(), RANGES_MAX);
    with(report, missing_tasks)
}

fn with(report: &Report, missing_tasks: String) -> Barrier {
    let named: u64 = missing_tasks.split(',').filter(|range| !range.is_empty()).map(length).sum();
    Barrier {
        name: name_of(&report.what),
        instance: report.counter.0,
        opened_ms: report.opened.map(|at| at.0),
        timeout_ms: report.timeout.map(|length| length.0),
        arrived: report.arrived.count,
        missing: report.missing.count,
        missing_tasks,
        missing_unnamed: u64::from(report.missing.count).saturating_sub(named),
        failed_ms: report.failure.as_ref().map(|failure| failure.at.0),
        why: report.failure.as_ref().map(|failure| failure.fault.text()),
    }
}

/// How many numbers a range has.
fn length(range: &str) -> u64 {
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    range.split_once('-').map_or(1, |(first, last)| (number(last) + 1).saturating_sub(number(first)))
}
