//! An entry that was committed in one term is in the log of the leader of every later term.

use std::collections::BTreeMap;

use tripod_state::ids::{LogIndex, NodeId, Term};

use crate::observation::{LogLine, Sample};

/// Entries that are compared; older ones have been purged everywhere.
const REMEMBERED: usize = 4096;

/// What was committed, and by when.
///
/// What a node has applied was committed. Its log on disk does not tell as much: a node may know that an
/// index is committed before its disk has the entry that was, in the place of another one.
#[derive(Debug, Default)]
pub(crate) struct LeaderCompleteness {
    committed: BTreeMap<LogIndex, Committed>,
    /// What nodes have applied since they were seen last.
    applied: BTreeMap<NodeId, Vec<LogLine>>,
    /// The highest index that was seen committed, and the term of the node that showed it first.
    highest: (LogIndex, Term),
}

#[derive(Debug, Clone, Copy)]
struct Committed {
    line: LogLine,
    /// The term of a node after it had applied the entry: it was committed in that or before.
    by: Term,
}

impl LeaderCompleteness {
    /// A node applies an entry.
    pub(crate) fn applied(&mut self, node: NodeId, line: LogLine) {
        self.applied.entry(node).or_default().push(line);
    }

    /// A node and what its log holds.
    pub(crate) fn see(&mut self, sample: &Sample, log: &[LogLine]) -> Result<(), String> {
        self.remember(sample);
        if sample.leads {
            self.check(sample, log)?;
        }
        Ok(())
    }

    fn check(&self, leader: &Sample, log: &[LogLine]) -> Result<(), String> {
        let Sample { node, term, last_log, .. } = *leader;
        let (highest, by) = self.highest;
        if by < term && last_log < highest {
            return Err(format!(
                "node {node} leads in term {term} with a log that ends at {last_log}, but {highest} was \
                 committed by term {by}"
            ));
        }
        for line in log {
            let Some(committed) = self.committed.get(&line.index) else { continue };
            if committed.by < term && committed.line != *line {
                return Err(format!(
                    "node {node} leads in term {term} and holds {line:?}, but {:?} was committed",
                    committed.line
                ));
            }
        }
        Ok(())
    }

    fn remember(&mut self, sample: &Sample) {
        if sample.committed > self.highest.0 {
            self.highest = (sample.committed, sample.term);
        }
        for line in self.applied.remove(&sample.node).unwrap_or_default() {
            self.committed.entry(line.index).or_insert(Committed { line, by: sample.term });
        }
        while self.committed.len() > REMEMBERED {
            self.committed.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::NodeId;

    use super::*;
    use crate::observation::Life;

    fn line(index: u64, term: u64, digest: u64) -> LogLine {
        LogLine { index: LogIndex(index), term: Term(term), leader: NodeId(1), digest }
    }

    fn sample(node: u64, term: u64, last_log: u64, committed: u64) -> Sample {
        Sample {
            node: NodeId(node),
            life: Life(1),
            leads: true,
            term: Term(term),
            last_log: LogIndex(last_log),
            committed: LogIndex(committed),
            applied: LogIndex(committed),
        }
    }

    /// A rule that has seen node 1 apply these in term 1.
    fn after(applied: &[LogLine]) -> LeaderCompleteness {
        let mut rule = LeaderCompleteness::default();
        applied.iter().for_each(|line| rule.applied(NodeId(1), *line));
        let last = applied.last().map_or(0, |line| line.index.0);
        assert_eq!(rule.see(&sample(1, 1, last, last), applied), Ok(()));
        rule
    }

    #[test]
    fn a_leader_with_all_that_was_committed_is_in_order() {
        let mut rule = after(&[line(1, 1, 10), line(2, 1, 11)]);
        let other = [line(1, 1, 10), line(2, 1, 11), line(3, 2, 99)];
        assert_eq!(rule.see(&sample(2, 2, 3, 2), &other), Ok(()), "index 3 was not committed");
    }

    /// Every node begins with an entry of its own at index 0, of which one is committed. Seed 374 has seen a node
    /// that knew so before its disk had that one.
    #[test]
    fn what_a_disk_still_holds_beside_what_was_committed_counts_for_nothing() {
        let mut rule = LeaderCompleteness::default();
        assert_eq!(rule.see(&sample(1, 1, 1, 1), &[line(0, 0, 10)]), Ok(()));
        rule.applied(NodeId(1), line(0, 0, 20));
        assert_eq!(rule.see(&sample(1, 1, 1, 1), &[line(0, 0, 20), line(1, 1, 21)]), Ok(()));
        assert_eq!(rule.see(&sample(2, 2, 1, 1), &[line(0, 0, 20), line(1, 1, 21)]), Ok(()));
        assert!(rule.see(&sample(3, 2, 1, 1), &[line(0, 0, 10), line(1, 1, 21)]).is_err());
    }

    #[test]
    fn a_leader_without_a_committed_entry_is_noticed() {
        let mut rule = after(&[line(1, 1, 10), line(2, 1, 11)]);
        let short = rule.see(&sample(2, 2, 1, 1), &[line(1, 1, 10)]).unwrap_err();
        assert!(short.contains("ends at 1, but 2 was committed by term 1"), "{short}");
        let other = rule.see(&sample(2, 2, 2, 1), &[line(1, 1, 10), line(2, 2, 11)]).unwrap_err();
        assert!(other.contains("leads in term 2 and holds"), "{other}");
    }
}
