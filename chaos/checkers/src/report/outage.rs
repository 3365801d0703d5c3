//! Times in which the cluster acknowledged no write though it was asked to.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::history::{History, Micros};

/// Gaps that a report lists: as many as a picture can hold apart.
pub const OUTAGES_MAX: usize = 200;
/// The shortest of them: shorter ones are the time that a write takes on a busy machine.
pub const OUTAGE_MIN: Micros = Micros::from_millis(100);

/// A gap between acknowledged writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// When the gap began, in microseconds of the run's clock.
    pub from_us: Micros,
    /// How long it was, in microseconds.
    pub length_us: Micros,
}

impl Outage {
    /// The longest gap of a history; `None` if nobody wrote.
    #[must_use]
    pub fn longest(history: &History) -> Option<Self> {
        Self::all(history).into_iter().max_by_key(|gap| gap.length_us)
    }

    /// The longest gaps of a history in the order in which they began: at most [`OUTAGES_MAX`], none below
    /// [`OUTAGE_MIN`].
    pub(super) fn shown(history: &History) -> Vec<Self> {
        let mut gaps = Self::all(history);
        gaps.retain(|gap| gap.length_us >= OUTAGE_MIN);
        gaps.sort_by_key(|gap| Reverse(gap.length_us));
        gaps.truncate(OUTAGES_MAX);
        gaps.sort_by_key(|gap| gap.from_us);
        gaps
    }

    /// When it ended.
    #[must_use]
    pub fn until(&self) -> Micros {
        self.from_us.plus(self.length_us)
    }

    /// All gaps of a history, one after the other.
    ///
    /// A gap begins with the last acknowledgement before it, or when the first write was asked for if there
    /// was none, and lasts until the next acknowledgement, or until the last client gave up. Time in which
    /// nobody waited for a write is no outage.
    #[must_use]
    pub fn all(history: &History) -> Vec<Self> {
        let mut asked: Vec<(Micros, Micros)> = Vec::new();
        let mut acknowledged: Vec<Micros> = Vec::new();
        for operation in history.operations.iter().filter(|operation| operation.call.writes()) {
            asked.push((operation.invoked, operation.completed));
            // A refusal by the domain went through the log too.
            if operation.reply().is_some() {
                acknowledged.push(operation.completed);
            }
        }
        acknowledged.sort_unstable();
        // Periods in which at least one client waited, merged.
        asked.sort_unstable();
        let mut busy: Vec<(Micros, Micros)> = Vec::new();
        for (from, until) in asked {
            match busy.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(until),
                _ => busy.push((from, until)),
            }
        }
        busy.into_iter().flat_map(|(from, until)| gaps(from, until, &acknowledged)).collect()
    }
}

/// The gaps of one busy period.
fn gaps(from: Micros, until: Micros, acknowledged: &[Micros]) -> Vec<Outage> {
    let first = acknowledged.partition_point(|at| *at < from);
    let inside = acknowledged[first..].iter().copied().take_while(|at| *at <= until);
    let mut gaps = Vec::new();
    let mut last = from;
    for at in inside.chain([until]) {
        gaps.push(Outage { from_us: last, length_us: at.since(last) });
        last = at;
    }
    gaps
}
