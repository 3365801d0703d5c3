//! If two logs have an entry of the same index and the same leader, they are the same up to it.
//!
//! A leader is a term and a node here, not a term alone: one term may have seen two of them.

use crate::observation::LogLine;

/// Compares two logs, each in ascending order of index. They may begin and end anywhere: what was purged is
/// not compared.
pub(crate) fn check(left: &[LogLine], right: &[LogLine]) -> Result<(), String> {
    let (Some(first), Some(end)) = (common_first(left, right), common_end(left, right)) else {
        return Ok(());
    };
    let (left, right) = (from(left, first), from(right, first));
    let both = left.iter().zip(right).take_while(|(line, _)| line.index.0 < end);
    let mut differs = None;
    for (left, right) in both {
        if left.index != right.index {
            return Err(format!("a hole: index {} stands where {} is due", left.index, right.index));
        }
        if left != right {
            differs.get_or_insert((left, right));
        }
        if (left.term, left.leader) == (right.term, right.leader)
            && let Some((ours, theirs)) = differs
        {
            return Err(format!(
                "two logs have an entry of node {} in term {} at index {}, but differ at index {}: {ours:?} and \
                 {theirs:?}",
                left.leader, left.term, left.index, ours.index
            ));
        }
    }
    Ok(())
}

fn common_first(left: &[LogLine], right: &[LogLine]) -> Option<u64> {
    Some(left.first()?.index.0.max(right.first()?.index.0))
}

fn common_end(left: &[LogLine], right: &[LogLine]) -> Option<u64> {
    Some(left.last()?.index.0.min(right.last()?.index.0) + 1)
}

fn from(log: &[LogLine], first: u64) -> &[LogLine] {
    &log[log.partition_point(|line| line.index.0 < first)..]
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::{LogIndex, NodeId, Term};

    use super::*;

    /// A log that begins at `first`, of triples of term, leader and digest.
    fn log(first: u64, entries: &[(u64, u64, u64)]) -> Vec<LogLine> {
        let line = |(place, (term, leader, digest)): (u64, &(u64, u64, u64))| LogLine {
            index: LogIndex(first + place),
            term: Term(*term),
            leader: NodeId(*leader),
            digest: *digest,
        };
        (0..).zip(entries).map(line).collect()
    }

    #[test]
    fn logs_may_differ_from_some_index_on_and_begin_and_end_anywhere() {
        let left = log(1, &[(1, 1, 10), (1, 1, 11), (2, 1, 12), (2, 1, 13)]);
        assert_eq!(check(&left, &log(1, &[(1, 1, 10), (1, 1, 11), (3, 1, 22)])), Ok(()));
        assert_eq!(check(&left, &log(3, &[(2, 1, 12), (2, 1, 13), (2, 1, 14)])), Ok(()));
        assert_eq!(check(&left, &log(3, &[(2, 2, 99)])), Ok(()), "of two leaders of one term");
        assert_eq!(check(&left, &log(9, &[(2, 1, 12)])), Ok(()));
        assert_eq!(check(&left, &[]), Ok(()));
    }

    #[test]
    fn a_difference_at_or_below_an_entry_of_the_same_leader_is_noticed() {
        let left = log(1, &[(1, 1, 10), (1, 1, 11), (2, 1, 12)]);
        let broken = check(&left, &log(1, &[(1, 1, 10), (1, 1, 99), (2, 1, 12)])).unwrap_err();
        assert!(broken.contains("of node 1 in term 1 at index 2, but differ at index 2"), "{broken}");
        let broken = check(&left, &log(2, &[(3, 1, 11), (2, 1, 12)])).unwrap_err();
        assert!(broken.contains("of node 1 in term 2 at index 3, but differ at index 2"), "{broken}");
    }

    #[test]
    fn a_hole_is_noticed() {
        let whole = log(1, &[(1, 1, 10), (1, 1, 11), (1, 1, 12)]);
        let mut holed = whole.clone();
        holed.remove(1);
        assert!(check(&whole, &holed).unwrap_err().contains("a hole"));
    }
}
