//! Lists of the members, as nodes are told them.

use std::collections::{BTreeMap, BTreeSet};

use super::seen::{Cluster, contradiction};
use crate::check::Violation;
use crate::history::{ClusterNode, ClusterRole, ListedNode, NodeName, Operation, Rank};

/// `excused`: who told an older list once more may have been a leader that knew no newer one.
pub(super) fn check(
    subject: &str,
    cluster: &Cluster<'_>,
    excused: impl Fn(&Operation) -> bool,
) -> Vec<Violation> {
    let mut answered: BTreeMap<&NodeName, Rank> = BTreeMap::new();
    for (node, life) in &cluster.lives {
        if let Some((_, rank)) = life.ranks.first() {
            answered.entry(&node.name).or_insert(*rank);
        }
    }
    let mut violations = Vec::new();
    let mut orders: Vec<(Vec<&[ListedNode]>, &Operation)> = Vec::new();
    for (node, life) in &cluster.lives {
        for (told, rank, list) in &life.lists {
            violations.extend(judge(subject, node, (*told, *rank, *list), &answered));
        }
        let (order, fallen) = in_order(&life.lists);
        violations.extend(fallen.filter(|told| !excused(told)).map(|told| {
            let text = format!("node {} was told a list that another had replaced for it", node.name);
            Violation::new("list-fell-back", subject, text, &[told])
        }));
        if let Some((told, _, _)) = life.lists.last() {
            orders.push((order, *told));
        }
    }
    for (place, (one, told)) in orders.iter().enumerate() {
        for (other, told_other) in &orders[place + 1..] {
            if contradiction(one, other).is_some() {
                let text = "two nodes were told the same lists of members in different orders".to_owned();
                violations.push(Violation::new("lists-out-of-order", subject, text, &[*told, *told_other]));
            }
        }
    }
    violations
}

/// The different lists in the order in which they were told, and the first telling of one that was replaced before.
fn in_order<'a>(
    lists: &[(&'a Operation, Rank, &'a [ListedNode])],
) -> (Vec<&'a [ListedNode]>, Option<&'a Operation>) {
    let (mut order, mut fallen) = (Vec::new(), None);
    for (told, _, list) in lists {
        if !order.contains(list) {
            order.push(*list);
        } else if order.last() != Some(list) {
            fallen = fallen.or(Some(*told));
        }
    }
    (order, fallen)
}

/// One list by itself, beside what nodes were answered.
fn judge(
    subject: &str,
    node: &ClusterNode,
    (told, rank, list): (&Operation, Rank, &[ListedNode]),
    answered: &BTreeMap<&NodeName, Rank>,
) -> Option<Violation> {
    let wrong = |rule: &str, text: String| Some(Violation::new(rule, subject, text, &[told]));
    if answered.get(&node.name).is_some_and(|own| *own != rank) {
        let own = answered[&node.name];
        return wrong("other-rank", format!("node {} has rank {own} and is told {rank}", node.name));
    }
    let mut ranks: BTreeSet<(ClusterRole, Rank)> = BTreeSet::new();
    let mut names: BTreeSet<&NodeName> = BTreeSet::new();
    for listed in list {
        if !ranks.insert((listed.role, listed.rank)) {
            return wrong("listed-twice", format!("rank {} stands twice in a list of members", listed.rank));
        }
        if listed.name.as_str().is_empty() {
            continue;
        }
        if !names.insert(&listed.name) {
            return wrong("listed-twice", format!("node {} stands twice in a list of members", listed.name));
        }
        if let Some(own) = answered.get(&listed.name)
            && *own != listed.rank
        {
            let text = format!("node {} has rank {own} and is listed with {}", listed.name, listed.rank);
            return wrong("other-rank", text);
        }
    }
    None
}
