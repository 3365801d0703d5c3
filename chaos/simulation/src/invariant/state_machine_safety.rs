//! No two nodes apply different entries at the same index.

use std::collections::BTreeMap;

use tripod_state::ids::{LogIndex, NodeId};

use crate::observation::LogLine;

/// Entries that are compared; what is older has been applied by all, or lies in a snapshot.
const REMEMBERED: usize = 16_384;

/// What was applied at each index, and by whom first.
#[derive(Debug, Default)]
pub(crate) struct StateMachineSafety {
    entries: BTreeMap<LogIndex, (LogLine, NodeId)>,
    compared: u64,
}

impl StateMachineSafety {
    /// A node applies an entry, for the first time or again after it was started again.
    pub(crate) fn applied(&mut self, node: NodeId, line: LogLine) -> Result<(), String> {
        let (first, by) = *self.entries.entry(line.index).or_insert((line, node));
        if by != node {
            self.compared += 1;
        }
        while self.entries.len() > REMEMBERED {
            self.entries.pop_first();
        }
        if first == line {
            return Ok(());
        }
        Err(format!("at index {} node {by} applied {first:?} and node {node} {line:?}", line.index))
    }

    /// How many entries were applied by one node after another had applied them.
    pub(crate) fn compared(&self) -> u64 {
        self.compared
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::Term;

    use super::*;

    #[test]
    fn two_entries_at_one_applied_index_are_noticed() {
        let line =
            |index, digest| LogLine { index: LogIndex(index), term: Term(1), leader: NodeId(1), digest };
        let mut rule = StateMachineSafety::default();
        assert_eq!(rule.applied(NodeId(1), line(1, 10)), Ok(()));
        assert_eq!(rule.applied(NodeId(1), line(2, 11)), Ok(()));
        assert_eq!(rule.applied(NodeId(2), line(1, 10)), Ok(()));
        assert_eq!(rule.compared(), 1);
        let broken = rule.applied(NodeId(3), line(2, 99)).unwrap_err();
        assert!(broken.starts_with("at index 2 node 1 applied"), "{broken}");
    }
}
