//! Every fault with the time without service that it fell into.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::Outage;
use crate::history::{History, Micros};

/// Faults that a report shows one by one: those with the longest times without service.
pub const TIMELINE_MAX: usize = 200;

/// A fault of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Episode {
    pub kind: String,
    /// What was hit, for people.
    pub target: String,
    /// When it began, in microseconds of the run's clock.
    pub from_us: Micros,
    /// How long it was there, in microseconds; `None`: it heals by itself, or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_us: Option<Micros>,
    /// How long it was to last by the plan, in microseconds; `None`: nobody planned that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_us: Option<Micros>,
    /// The longest time without an acknowledged write that it fell into; it may have begun earlier and ended later.
    /// `None`: nobody waited for a write.
    pub outage: Option<Outage>,
}

/// The faults of a history in the order in which they began, at most [`TIMELINE_MAX`] of them.
pub(super) fn timeline(history: &History) -> Vec<Episode> {
    // One after the other, so both their beginnings and their ends ascend.
    let outages = Outage::all(history);
    let mut episodes: Vec<Episode> = history
        .faults
        .iter()
        .map(|fault| {
            let ended = fault.ended.unwrap_or(fault.began);
            let first = outages.partition_point(|outage| outage.until() < fault.began);
            let met = outages[first..].iter().take_while(|outage| outage.from_us <= ended);
            Episode {
                kind: fault.kind.clone(),
                target: fault.target.clone(),
                from_us: fault.began,
                length_us: fault.ended.map(|ended| ended.since(fault.began)),
                planned_us: fault.planned,
                outage: met.max_by_key(|outage| outage.length_us).copied(),
            }
        })
        .collect();
    episodes.sort_by_key(|episode| Reverse(episode.outage.map(|outage| outage.length_us)));
    episodes.truncate(TIMELINE_MAX);
    episodes.sort_by_key(|episode| episode.from_us);
    episodes
}
