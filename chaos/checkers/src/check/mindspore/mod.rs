//! Nodes of MindSpore's clusters: what they were answered, and what they were told.
//!
//! | module | promise |
//! |---|---|
//! | `ranks` | a node has one rank, and no two of a role have the same |
//! | `members` | lists of the members agree with the ranks, and what replaced one never gives way to it again |
//! | `events` | what a node told all reaches all who knew of each other then, in one order, and nothing else does |
//! | `finish` | when all have finished all are told so, and not before |
//! | `seen` | what is known of each cluster and of each process of its nodes |

mod events;
mod finish;
mod members;
mod ranks;
mod seen;
#[cfg(test)]
mod tests;

use super::{Checked, Rules};
use crate::history::History;
use seen::Clusters;

const CHECKER: &str = "mindspore";

/// Looks at every cluster for itself.
#[must_use]
pub fn check(history: &History, rules: &Rules) -> Checked {
    let clusters = Clusters::of(history);
    let mut violations = Vec::new();
    for (subject, cluster) in clusters.each() {
        violations.extend(ranks::check(&subject, cluster));
        violations.extend(members::check(&subject, cluster, |operation| {
            seen::by_deposed_leader(operation, history, rules)
        }));
        violations.extend(events::check(&subject, cluster));
        violations.extend(finish::check(&subject, cluster));
    }
    Checked::told(CHECKER, clusters.examined(), violations)
}
