//! Whether every node stayed within its memory, whatever clients did.

use std::collections::BTreeMap;

use tripod_checkers::check::{Checked, Violation};

/// Judges the most that each node took, in bytes.
pub(super) fn judge(resident_max_bytes: &BTreeMap<u64, u64>, bound_bytes: u64) -> Checked {
    let beyond = resident_max_bytes.iter().filter(|(_, bytes)| **bytes > bound_bytes);
    let violations = beyond.map(|(node, bytes)| {
        let explanation = format!("it took {}, its bound is {}", mib(*bytes), mib(bound_bytes));
        Violation::new("memory", format!("node {node}"), explanation, &[])
    });
    Checked::told("memory", resident_max_bytes.len(), violations.collect())
}

/// Bytes for people.
pub(super) fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_beyond_its_bound_is_named() {
        let took = BTreeMap::from([(1, 100 << 20), (2, 301 << 20), (3, 300 << 20)]);
        let judged = judge(&took, 300 << 20);
        let [violation] = judged.violations() else { panic!("{judged:?}") };
        assert_eq!(violation.to_string(), "memory of node 2: it took 301 MiB, its bound is 300 MiB");
        assert!(judge(&took, 301 << 20).held());
    }
}
