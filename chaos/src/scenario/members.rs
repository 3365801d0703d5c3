//! Who the members were, as the nodes' logs tell: each node writes every list that it applies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context as _;
use tripod_raft::{LogLine, SeenMembers};
use tripod_state::ids::{LogIndex, NodeId, Term};

use tripod_checkers::check::Violation;
use tripod_simulation::{OneMembership, SimTime};

/// How a line about a list of the members ends, before its fields.
const WORDS: &str = "the members are listed";

/// Every list that any node has told of, in the order in which the nodes were asked.
#[derive(Debug, Default)]
pub(super) struct MembersLog {
    lists: BTreeMap<LogIndex, Vec<(LogLine, SeenMembers)>>,
}

impl MembersLog {
    /// Reads one machine's log.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn add(&mut self, log: &Path) -> anyhow::Result<()> {
        let bytes = std::fs::read(log).with_context(|| format!("cannot read {}", log.display()))?;
        for line in String::from_utf8_lossy(&bytes).lines().filter(|line| line.contains(WORDS)) {
            let (place, members) =
                parse(line).with_context(|| format!("a line about members cannot be understood: {line}"))?;
            self.lists.entry(place.index).or_default().push((place, members));
        }
        Ok(())
    }

    /// How many lists there were, and what was wrong with them. When they were applied plays no part in that.
    pub(super) fn judge(&self) -> (usize, Vec<Violation>) {
        let mut rule = OneMembership::default();
        let mut broken = Vec::new();
        for (line, members) in self.lists.values().flatten() {
            if let Err(why) = rule.entered(SimTime::default(), *line, members) {
                broken.push(Violation::new("one membership", format!("index {}", line.index), why, &[]));
            }
        }
        (self.lists.len(), broken)
    }
}

/// A line's place in the log, and its list.
fn parse(line: &str) -> Option<(LogLine, SeenMembers)> {
    let field = |name: &str| {
        let (_, rest) = line.split_once(&format!(" {name}="))?;
        Some(rest.split(' ').next()?.trim_matches('"'))
    };
    let ids = |text: &str| -> Option<BTreeSet<NodeId>> {
        text.split(',').filter(|id| !id.is_empty()).map(|id| id.parse().ok().map(NodeId)).collect()
    };
    let sets: Vec<_> = field("voters")?.split('|').map(ids).collect::<Option<_>>()?;
    let learners = ids(field("learners")?)?;
    let nodes = sets.iter().flatten().copied().chain(learners).collect();
    let line = LogLine {
        index: LogIndex(field("index")?.parse().ok()?),
        term: Term(field("term")?.parse().ok()?),
        leader: NodeId(0),
        digest: 0,
    };
    Some((line, SeenMembers { sets, nodes }))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// As nodes write it.
    fn line(index: u64, voters: &str, learners: &str) -> String {
        format!(
            "2026-11-22T10:00:00.0Z  INFO tripod_raft::apply::cluster_configuration: {WORDS} index={index} term=3 \
             voters=\"{voters}\" learners=\"{learners}\"\n"
        )
    }

    fn judged(logs: &[&[String]]) -> (usize, Vec<String>) {
        let mut told = MembersLog::default();
        for lines in logs {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(lines.concat().as_bytes()).unwrap();
            told.add(file.path()).unwrap();
        }
        let (lists, broken) = told.judge();
        (lists, broken.into_iter().map(|violation| violation.explanation).collect())
    }

    #[test]
    fn lists_of_several_nodes_make_one_history() {
        let first = line(0, "1,2,3", "");
        let added = line(40, "1,2,3", "4");
        let joint = line(50, "1,2,3|1,2,4", "");
        let last = line(51, "1,2,4", "");
        let (lists, broken) =
            judged(&[&[first.clone(), added.clone(), "other\n".to_owned()], &[added, joint, last]]);
        assert_eq!((lists, broken), (4, Vec::new()));
    }

    #[test]
    fn a_jump_and_two_lists_at_one_index_are_noticed() {
        let (_, broken) = judged(&[&[line(0, "1,2,3", ""), line(9, "4,5,6", "")]]);
        assert!(broken[0].contains("could decide by"), "{broken:?}");
        let (_, broken) = judged(&[&[line(5, "1,2,3", "")], &[line(5, "1,2,3", "4")]]);
        assert!(broken[0].contains("at index 5 one node has"), "{broken:?}");
    }

    #[test]
    fn a_line_that_cannot_be_understood_is_no_silence() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "{WORDS} index=x").unwrap();
        assert!(MembersLog::default().add(file.path()).is_err());
    }
}
