//! Replicas that applied the same log are equal.

use std::collections::BTreeMap;

use super::{Checked, Rules, Violation};
use crate::history::{History, LogIndex, Operation, Reply};

const CHECKER: &str = "digest";

/// Compares the digests of all nodes, and of one node at different times, at each applied index.
#[must_use]
pub fn check(history: &History, _rules: &Rules) -> Checked {
    let mut digests: BTreeMap<LogIndex, (u64, &Operation)> = BTreeMap::new();
    let mut violations = Vec::new();
    let mut examined = 0;
    for operation in &history.operations {
        let Some(Reply::Digest { node, applied_index, digest }) = operation.reply() else { continue };
        examined += 1;
        let (first, by) = *digests.entry(*applied_index).or_insert((*digest, operation));
        if first != *digest {
            let text = format!(
                "node {node} applied the log up to index {applied_index} and has digest {digest:016x}; \
                operation {} saw {first:016x} at the same index",
                by.id
            );
            violations.push(Violation::new("diverged-state", format!("node {node}"), text, &[by, operation]));
        }
    }
    Checked::told(CHECKER, examined, violations)
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;

    use super::*;
    use crate::check::testing::{Executor, Tally};
    use crate::history::{Call, NodeId, Outcome};

    fn model(seed: u64) -> History {
        let mut applied = 0;
        Executor::new(seed).run(|random, _| {
            applied += random.random_range(0..2);
            let node = NodeId(random.random_range(1..4));
            let reply =
                Reply::Digest { node, applied_index: LogIndex(applied), digest: applied * 0x9e37_79b9 };
            (Call::ReadDigest { node }, Outcome::Ok(reply))
        })
    }

    #[test]
    fn a_replica_that_diverged_is_seen() {
        let judge = |history: &History| check(history, &Rules::default());
        Tally::all_caught(
            "diverged state",
            100,
            model,
            |random, history| {
                let mut indexes = BTreeMap::new();
                for (place, operation) in history.operations.iter().enumerate() {
                    if let Some(Reply::Digest { applied_index, .. }) = operation.reply() {
                        indexes.entry(*applied_index).or_insert_with(Vec::new).push(place);
                    }
                }
                let shared: Vec<&Vec<usize>> = indexes.values().filter(|places| places.len() > 1).collect();
                let Some(places) = shared.get(random.random_range(0..shared.len().max(1))) else {
                    return false;
                };
                let Outcome::Ok(Reply::Digest { digest, .. }) = &mut history.operations[places[1]].outcome
                else {
                    return false;
                };
                *digest ^= 1 << 17;
                true
            },
            judge,
        );
    }
}
