//! Graphs and mutable tensors of Mars: what clients asked for, and how they found them.
//!
//! | module | promise |
//! |---|---|
//! | `graphs`, `course` | a graph comes to one end, goes forward only, and is lost by nobody; what it makes is right |
//! | `tensors` | epochs rise, a tensor is sealed once, nothing stale is taken and nothing acknowledged is lost |
//! | `cell` | each cell of a tensor has one order of its writes, and reads see the last one of their time |
//! | `seen` | what is known of each graph and of each tensor |

mod cell;
mod course;
mod graphs;
mod seen;
mod tensors;
#[cfg(test)]
mod tests;

use super::{Checked, Rules};
use crate::history::History;
use seen::Seen;

const CHECKER: &str = "mars";
/// Kinds of faults by which workers and stores end, or are given up because nobody hears them. Without them no graph fails
/// that was not to fail.
const DEADLY: [&str; 6] =
    ["kill-worker", "kill-store", "kill-machine", ALL_PEERS, "partition-clients", "hold"];
/// The kind of a fault by which all stores may be gone at the same time, with what they keep.
const ALL_PEERS: &str = "kill-peers";

/// Looks at every graph and every tensor for itself.
///
/// Undecided if the search for an order of a cell's operations needs more than [`Rules::steps_per_key`] and nothing else is
/// wrong.
#[must_use]
pub fn check(history: &History, rules: &Rules) -> Checked {
    let seen = Seen::of(history);
    let has = |kinds: &[&str]| history.faults.iter().any(|fault| kinds.contains(&fault.kind.as_str()));
    let (deadly, all_peers) = (has(&DEADLY), has(&[ALL_PEERS]));
    let mut violations = Vec::new();
    for (name, graph) in &seen.graphs {
        violations.extend(graphs::check(name, graph, deadly));
    }
    let mut undecided = Vec::new();
    for (name, tensor) in &seen.tensors {
        violations.extend(tensors::check(name, tensor, all_peers));
        let (broken, open) = cell::check(name, tensor, rules.steps_per_key);
        violations.extend(broken);
        undecided.extend(open);
    }
    if let (true, Some(first)) = (violations.is_empty(), undecided.first()) {
        let (count, steps) = (undecided.len(), rules.steps_per_key);
        let reason = format!("{count} cells, the first one {first}, need more than {steps} steps");
        return Checked::undecided(CHECKER, seen.examined, reason);
    }
    Checked::told(CHECKER, seen.examined, violations)
}
