//! An entry that was committed in one term is in the log of the leader of every later term.

use std::collections::BTreeMap;

use tripod_state::ids::{LogIndex, Term};

use crate::simulation::observation::{LogLine, Sample};

/// Entries that are compared; older ones have been purged everywhere.
const REMEMBERED: usize = 4096;

/// What was committed, and by when.
#[derive(Debug, Default)]
pub(crate) struct LeaderCompleteness {
    committed: BTreeMap<LogIndex, Committed>,
    /// The highest index that was seen committed, and the term of the node that showed it first.
    highest: (LogIndex, Term),
}

#[derive(Debug, Clone, Copy)]
struct Committed {
    line: LogLine,
    /// The term of the node that first showed the entry as committed: it was committed in that or before.
    by: Term,
}

impl LeaderCompleteness {
    /// A node and what its log holds.
    pub(crate) fn see(&mut self, sample: &Sample, log: &[LogLine]) -> Result<(), String> {
        if sample.leads {
            self.check(sample, log)?;
        }
        self.remember(sample, log);
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

    fn remember(&mut self, sample: &Sample, log: &[LogLine]) {
        if sample.committed > self.highest.0 {
            self.highest = (sample.committed, sample.term);
        }
        // Index 0 is also what is shown when nothing is committed: every node begins with an entry of its own there.
        let committed = |line: &&LogLine| sample.committed.0 > 0 && line.index <= sample.committed;
        for line in log.iter().filter(committed) {
            self.committed.entry(line.index).or_insert(Committed { line: *line, by: sample.term });
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
    use crate::simulation::observation::Life;

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

    #[test]
    fn a_leader_with_all_that_was_committed_is_in_order() {
        let mut rule = LeaderCompleteness::default();
        let log = [line(1, 1, 10), line(2, 1, 11), line(3, 1, 12)];
        assert_eq!(rule.see(&sample(1, 1, 3, 2), &log), Ok(()));
        let other = [line(1, 1, 10), line(2, 1, 11), line(3, 2, 99)];
        assert_eq!(rule.see(&sample(2, 2, 3, 2), &other), Ok(()), "index 3 was not committed");
    }

    #[test]
    fn the_entry_with_which_a_node_begins_is_not_committed_yet() {
        let mut rule = LeaderCompleteness::default();
        assert_eq!(rule.see(&sample(1, 0, 0, 0), &[line(0, 0, 10)]), Ok(()));
        assert_eq!(rule.see(&sample(2, 1, 0, 0), &[line(0, 0, 20)]), Ok(()));
    }

    #[test]
    fn a_leader_without_a_committed_entry_is_noticed() {
        let mut rule = LeaderCompleteness::default();
        let log = [line(1, 1, 10), line(2, 1, 11)];
        assert_eq!(rule.see(&sample(1, 1, 2, 2), &log), Ok(()));
        let short = rule.see(&sample(2, 2, 1, 1), &log[..1]).unwrap_err();
        assert!(short.contains("ends at 1, but 2 was committed by term 1"), "{short}");
        let other = rule.see(&sample(2, 2, 2, 1), &[line(1, 1, 10), line(2, 2, 11)]).unwrap_err();
        assert!(other.contains("leads in term 2 and holds"), "{other}");
    }
}
