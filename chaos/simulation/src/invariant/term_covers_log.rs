//! A node's term is never below that of an entry in its log: it promised to have left all earlier terms, and a
//! crash does not take that back.

use crate::observation::{LogLine, Sample};

/// Compares a node with the end of its log on disk.
pub(crate) fn check(sample: &Sample, log: &[LogLine]) -> Result<(), String> {
    let Some(last) = log.last() else { return Ok(()) };
    // A node that has not read its log yet shows no term either.
    if sample.last_log < last.index || sample.term >= last.term {
        return Ok(());
    }
    Err(format!(
        "node {} is in term {} in life {}, but its log holds index {} of term {}",
        sample.node, sample.term, sample.life.0, last.index, last.term
    ))
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::{LogIndex, NodeId, Term};

    use super::*;
    use crate::observation::Life;

    #[test]
    fn a_term_below_that_of_the_log_is_noticed() {
        let sample = |term, last_log| Sample {
            node: NodeId(1),
            life: Life(2),
            leads: false,
            term: Term(term),
            last_log: LogIndex(last_log),
            committed: LogIndex(0),
            applied: LogIndex(0),
        };
        let log = [LogLine { index: LogIndex(7), term: Term(3), leader: NodeId(1), digest: 1 }];
        assert_eq!(check(&sample(3, 7), &log), Ok(()));
        assert_eq!(check(&sample(4, 7), &log), Ok(()));
        assert_eq!(check(&sample(0, 0), &log), Ok(()), "it has not read its log yet");
        assert_eq!(check(&sample(0, 0), &[]), Ok(()));
        let broken = check(&sample(2, 7), &log).unwrap_err();
        assert_eq!(broken, "node 1 is in term 2 in life 2, but its log holds index 7 of term 3");
    }
}
