//! Members change by one committed list after the other, and no two lists that follow each other could decide
//! without each other. An id that left never comes back, and whoever has it is elected no more.
//!
//! A leader may well have entered a list without itself, lost its office, and been elected again before that list
//! was decided: it leads until then, and is the one who decides it.

use std::collections::{BTreeMap, BTreeSet};

use tripod_raft::SeenMembers;
use tripod_state::ids::{LogIndex, NodeId, Term};

use crate::observation::{LogLine, SimTime};

/// The lists that nodes have applied, by their place in the log.
///
/// The first node that applies a list has applied all before it, or has a snapshot of a node that has: so they
/// come in the order of the log.
#[derive(Debug, Default)]
pub struct OneMembership {
    lists: BTreeMap<LogIndex, (LogLine, SeenMembers)>,
    /// Ids that left, and when a node first applied a list without them.
    gone: BTreeMap<NodeId, SimTime>,
    /// When a node was first seen to have been elected in a term.
    elected: BTreeMap<(Term, NodeId), SimTime>,
    highest: NodeId,
    /// Ids that were given to those that asked for one.
    joined: BTreeSet<NodeId>,
}

impl OneMembership {
    /// A machine was given an id for its node: for the first time, as it asks no more once it knows.
    pub(crate) fn joined(&mut self, node: NodeId) -> Result<(), String> {
        if self.gone.contains_key(&node) || !self.joined.insert(node) {
            return Err(format!("id {node} is given to a machine, which another one had"));
        }
        Ok(())
    }

    /// A node applies an entry that lists the members.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn entered(&mut self, at: SimTime, line: LogLine, members: &SeenMembers) -> Result<(), String> {
        if let Some((_, known)) = self.lists.get(&line.index) {
            return if known == members {
                Ok(())
            } else {
                Err(format!(
                    "at index {} one node has {}, another {}",
                    line.index,
                    words(known),
                    words(members)
                ))
            };
        }
        let before = self.lists.last_key_value().map(|(_, (_, members))| members.clone());
        self.lists.insert(line.index, (line, members.clone()));
        let judged = self.judge_ids(at, line, before.as_ref(), members);
        let Some(before) = before else { return judged };
        if let Some(some) = apart(&before, members) {
            return Err(format!(
                "{some:?} could decide by {}, and the others by {} of index {}",
                words(&before),
                words(members),
                line.index
            ));
        }
        judged
    }

    fn judge_ids(
        &mut self,
        at: SimTime,
        line: LogLine,
        before: Option<&SeenMembers>,
        members: &SeenMembers,
    ) -> Result<(), String> {
        let before = before.map(|before| before.nodes.clone()).unwrap_or_default();
        for node in before.difference(&members.nodes) {
            self.gone.insert(*node, at);
        }
        let highest = self.highest;
        let mut judged = Ok(());
        for node in members.nodes.difference(&before) {
            if !before.is_empty() && *node <= highest {
                judged = Err(format!("index {} gives id {node}, which was given before", line.index));
            }
            self.highest = self.highest.max(*node);
        }
        judged
    }

    /// A node, itself or another one, knows that a node leads.
    pub(crate) fn leads(&mut self, at: SimTime, node: NodeId, term: Term) -> Result<(), String> {
        let elected = *self.elected.entry((term, node)).or_insert(at);
        match self.gone.get(&node) {
            Some(left) if *left < elected => {
                Err(format!("node {node} leads in term {term} since {elected}, but left at {left}"))
            }
            _ => Ok(()),
        }
    }

    /// The list in force once that index was applied.
    pub(crate) fn at(&self, index: LogIndex) -> Option<&SeenMembers> {
        self.lists.range(..=index).next_back().map(|(_, (_, members))| members)
    }

    /// The last list that was entered by a leader before that one.
    pub(crate) fn before(&self, term: Term, leader: NodeId) -> Option<&SeenMembers> {
        let earlier = |line: &LogLine| (line.term, line.leader) < (term, leader);
        self.lists.values().rev().find(|(line, _)| earlier(line)).map(|(_, members)| members)
    }

    /// The list that was entered last.
    pub(crate) fn last(&self) -> Option<&SeenMembers> {
        self.lists.last_key_value().map(|(_, (_, members))| members)
    }

    /// How many lists there were.
    pub(crate) fn lists(&self) -> u64 {
        self.lists.len() as u64
    }
}

/// Whether these nodes decide: a majority of each set of voters.
pub(crate) fn decides(members: &SeenMembers, nodes: &BTreeSet<NodeId>) -> bool {
    let majority = |set: &BTreeSet<NodeId>| set.intersection(nodes).count() > set.len() / 2;
    !members.sets.is_empty() && members.sets.iter().all(majority)
}

/// Nodes that decide by one list while the others decide by the other one.
fn apart(one: &SeenMembers, other: &SeenMembers) -> Option<BTreeSet<NodeId>> {
    let voters: BTreeSet<NodeId> = one.sets.iter().chain(&other.sets).flatten().copied().collect();
    let voters: Vec<NodeId> = voters.into_iter().collect();
    (0_u32..1 << voters.len()).find_map(|chosen| {
        let side = |wanted: bool| {
            let is_there = |place: &usize| (chosen >> place & 1 == 1) == wanted;
            (0..voters.len()).filter(is_there).map(|place| voters[place]).collect::<BTreeSet<_>>()
        };
        let some = side(true);
        (decides(one, &some) && decides(other, &side(false))).then_some(some)
    })
}

/// As people read it.
pub(crate) fn words(members: &SeenMembers) -> String {
    let set = |set: &BTreeSet<NodeId>| set.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let sets: Vec<_> = members.sets.iter().map(set).collect();
    let voters: BTreeSet<NodeId> = members.sets.iter().flatten().copied().collect();
    let learners: BTreeSet<NodeId> = members.nodes.difference(&voters).copied().collect();
    format!("voters [{}], learners [{}]", sets.join("] and ["), set(&learners))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(sets: &[&[u64]], learners: &[u64]) -> SeenMembers {
        let set = |ids: &&[u64]| ids.iter().copied().map(NodeId).collect::<BTreeSet<_>>();
        let sets: Vec<_> = sets.iter().map(set).collect();
        let nodes = sets.iter().flatten().copied().chain(learners.iter().copied().map(NodeId)).collect();
        SeenMembers { sets, nodes }
    }

    fn line(index: u64, term: u64) -> LogLine {
        LogLine { index: LogIndex(index), term: Term(term), leader: NodeId(1), digest: index }
    }

    fn entered(lists: &[SeenMembers]) -> Result<OneMembership, String> {
        let mut rule = OneMembership::default();
        for (place, members) in lists.iter().enumerate() {
            rule.entered(SimTime(place as u64), line(place as u64, 1), members)?;
        }
        Ok(rule)
    }

    #[test]
    fn growing_by_two_sets_at_a_time_is_in_order() {
        let rule = entered(&[
            list(&[&[1, 2, 3]], &[]),
            list(&[&[1, 2, 3]], &[4]),
            list(&[&[1, 2, 3], &[1, 2, 3, 4]], &[]),
            list(&[&[1, 2, 3, 4]], &[]),
            list(&[&[1, 2, 3, 4], &[1, 2, 3]], &[]),
            list(&[&[1, 2, 3]], &[]),
        ])
        .unwrap();
        assert_eq!(rule.lists(), 6);
        assert_eq!(rule.gone.keys().copied().collect::<Vec<_>>(), [NodeId(4)]);
        assert_eq!(rule.at(LogIndex(2)), Some(&list(&[&[1, 2, 3], &[1, 2, 3, 4]], &[])));
    }

    #[test]
    fn two_majorities_without_a_common_node_are_noticed() {
        let jump = [list(&[&[1, 2, 3]], &[]), list(&[&[3, 4, 5]], &[])];
        let broken = entered(&jump).unwrap_err();
        assert!(broken.contains("could decide by voters [1,2,3]"), "{broken}");
        let joint =
            [list(&[&[1, 2, 3]], &[]), list(&[&[1, 2, 3], &[3, 4, 5]], &[]), list(&[&[3, 4, 5]], &[])];
        assert!(entered(&joint).is_ok());
        let left = [list(&[&[1, 2, 3], &[3, 4, 5]], &[]), list(&[&[6, 7]], &[])];
        assert!(entered(&left).is_err());
    }

    #[test]
    fn an_id_that_comes_back_is_noticed() {
        let back = [list(&[&[1, 2, 3]], &[4]), list(&[&[1, 2, 3]], &[]), list(&[&[1, 2, 3]], &[4])];
        assert_eq!(entered(&back).unwrap_err(), "index 2 gives id 4, which was given before");
        let lower = [list(&[&[1, 2, 9]], &[]), list(&[&[1, 2, 9]], &[4])];
        assert!(entered(&lower).is_err(), "an id that was passed over");
    }

    #[test]
    fn an_id_that_two_machines_get_is_noticed() {
        let mut rule = entered(&[list(&[&[1, 2, 3]], &[]), list(&[&[1, 2]], &[])]).unwrap();
        assert_eq!(rule.joined(NodeId(4)), Ok(()));
        assert!(rule.joined(NodeId(4)).is_err(), "twice");
        assert!(rule.joined(NodeId(3)).is_err(), "it left");
    }

    #[test]
    fn two_lists_at_one_index_are_noticed() {
        let mut rule = entered(&[list(&[&[1, 2, 3]], &[])]).unwrap();
        assert_eq!(rule.entered(SimTime(1), line(0, 1), &list(&[&[1, 2, 3]], &[])), Ok(()));
        assert!(rule.entered(SimTime(1), line(0, 1), &list(&[&[1, 2]], &[])).is_err());
    }

    #[test]
    fn a_removed_node_that_is_elected_is_noticed() {
        let mut rule = entered(&[list(&[&[1, 2, 3]], &[]), list(&[&[1, 2, 3], &[1, 2]], &[])]).unwrap();
        assert_eq!(rule.leads(SimTime(50), NodeId(3), Term(5)), Ok(()));
        // The list was entered in term 4, by the leader whom it removes, and is decided in term 5.
        rule.entered(SimTime(60), line(2, 4), &list(&[&[1, 2]], &[])).unwrap();
        assert_eq!(rule.leads(SimTime(70), NodeId(3), Term(5)), Ok(()), "it decided that list");
        assert_eq!(rule.leads(SimTime(80), NodeId(2), Term(6)), Ok(()));
        let broken = rule.leads(SimTime(90), NodeId(3), Term(7)).unwrap_err();
        assert_eq!(broken, "node 3 leads in term 7 since 0.090 s, but left at 0.060 s");
        assert_eq!(rule.before(Term(2), NodeId(1)), Some(&list(&[&[1, 2, 3], &[1, 2]], &[])));
    }
}
