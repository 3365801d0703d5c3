//! The first sentence about a job: who is waited for, and where.

use serde::Serialize;
use tripod_state::barrier::Gathering;
use tripod_state::ids::TaskId;

use crate::ui::facts::barriers::name_of;
use crate::ui::facts::ranges;
use crate::ui::letters;

/// Ranges of tasks in a sentence.
const RANGES_SAID_MAX: usize = 8;

/// How a job is, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Headline {
    /// `failed`, `waits`, `runs` or `empty`.
    pub(crate) kind: &'static str,
    pub(crate) text: String,
    /// By the log's time: since when somebody waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since_ms: Option<u64>,
}

/// Of tasks in these states, at these barriers. A barrier at which the most wait comes first.
pub(crate) fn of(states: &[u8], gatherings: &[Gathering]) -> Headline {
    let count = |letters: &[u8]| states.iter().filter(|letter| letters.contains(letter)).count();
    let waits = gatherings.iter().filter(|one| one.report.missing.count > 0);
    if let Some(place) = waits.max_by_key(|one| one.report.arrived.count) {
        let report = &place.report;
        let who = tasks(&place.missing, report.missing.count);
        let has = if report.missing.count == 1 { "has" } else { "have" };
        let came = report.arrived.count;
        let wait = if came == 1 { "waits" } else { "wait" };
        let it = if report.missing.count == 1 { "it" } else { "them" };
        return Headline {
            kind: "waits",
            text: format!("{who} {has} not come to {}; {came} {wait} for {it}", name_of(&report.what)),
            since_ms: report.opened.map(|at| at.0),
        };
    }
    let ended = count(b"xef");
    if ended > 0 {
        let text = format!("{ended} of {} tasks ended, were lost or are in error", states.len());
        return Headline { kind: "failed", text, since_ms: None };
    }
    let connected = count(&[letters::CONNECTED, letters::IN_BARRIER, letters::AWAITED, letters::LATE]);
    if connected == 0 {
        let text = format!("none of {} tasks is connected", states.len());
        return Headline { kind: "empty", text, since_ms: None };
    }
    let text = format!("{connected} of {} tasks are connected, and nobody waits at a barrier", states.len());
    Headline { kind: "runs", text, since_ms: None }
}

fn tasks(named: &[TaskId], count: u32) -> String {
    let (ranges, left_out) = ranges(named.iter().copied(), RANGES_SAID_MAX);
    match (count, left_out) {
        (1, _) if !ranges.is_empty() => format!("task {ranges}"),
        (_, 0) if named.len() == count as usize => format!("{count} tasks ({ranges})"),
        _ if ranges.is_empty() => format!("{count} tasks"),
        _ => format!("{count} tasks ({ranges},...)"),
    }
}
