//! Nodes that have applied the same number of entries have the same state.

use std::collections::BTreeMap;

use tripod_state::ids::{LogIndex, NodeId};

/// The digest of the state at each index that was looked at, and whose it was.
#[derive(Debug, Default)]
pub(crate) struct EqualDigests {
    digests: BTreeMap<LogIndex, (u64, NodeId)>,
    compared: u64,
}

impl EqualDigests {
    /// The digest of a node's state at the index that it has applied.
    pub(crate) fn see(&mut self, node: NodeId, applied: LogIndex, digest: u64) -> Result<(), String> {
        let (first, by) = *self.digests.entry(applied).or_insert((digest, node));
        if by != node {
            self.compared += 1;
        }
        if first == digest {
            return Ok(());
        }
        Err(format!(
            "at index {applied} the state of node {by} is {first:016x}, of node {node} {digest:016x}"
        ))
    }

    /// How often two nodes were compared.
    pub(crate) fn compared(&self) -> u64 {
        self.compared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_digest_at_the_same_index_is_noticed() {
        let mut rule = EqualDigests::default();
        assert_eq!(rule.see(NodeId(1), LogIndex(5), 0xA), Ok(()));
        assert_eq!(rule.see(NodeId(2), LogIndex(6), 0xB), Ok(()));
        assert_eq!(rule.see(NodeId(2), LogIndex(5), 0xA), Ok(()));
        assert_eq!(rule.compared(), 1);
        let broken = rule.see(NodeId(3), LogIndex(6), 0xC).unwrap_err();
        assert!(broken.starts_with("at index 6 the state of node 2 is"), "{broken}");
    }
}
