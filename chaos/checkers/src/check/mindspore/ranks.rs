//! Ranks: one for each node, and none for two.

use std::collections::BTreeMap;

use super::seen::{Cluster, Life};
use crate::check::Violation;
use crate::history::{ClusterRole, Micros, NodeName, Operation, Rank};

/// What one node was answered, by whichever of its processes asked.
struct Answered<'a> {
    role: ClusterRole,
    ranks: Vec<(&'a Operation, Rank)>,
    /// When the last of its processes was ended, if all were: another may have its place then.
    over: Option<Micros>,
}

pub(super) fn check(subject: &str, cluster: &Cluster<'_>) -> Vec<Violation> {
    let mut names: BTreeMap<&NodeName, Vec<(ClusterRole, &Life<'_>)>> = BTreeMap::new();
    for (node, life) in &cluster.lives {
        names.entry(&node.name).or_default().push((node.role, life));
    }
    let answered: BTreeMap<&NodeName, Answered<'_>> =
        names.into_iter().filter_map(|(name, lives)| Some((name, Answered::of(&lives)?))).collect();
    let two = answered.iter().filter_map(|(name, answered)| two_ranks(subject, name, answered));
    two.chain(twice(subject, &answered)).collect()
}

impl<'a> Answered<'a> {
    fn of(lives: &[(ClusterRole, &Life<'a>)]) -> Option<Self> {
        let (role, _) = lives.first()?;
        let mut ranks: Vec<_> = lives.iter().flat_map(|(_, life)| life.ranks.iter().copied()).collect();
        ranks.sort_by_key(|(operation, _)| operation.id);
        let ends: Option<Vec<Micros>> =
            lives.iter().map(|(_, life)| life.ended.map(|ended| ended.completed)).collect();
        let over = ends.and_then(|ends| ends.into_iter().max());
        (!ranks.is_empty()).then_some(Self { role: *role, ranks, over })
    }
}

fn two_ranks(subject: &str, name: &NodeName, answered: &Answered<'_>) -> Option<Violation> {
    let (first, rank) = answered.ranks.first()?;
    let (other, another) = answered.ranks.iter().find(|(_, other)| other != rank)?;
    let text = format!("node {name} was answered rank {rank}, and then rank {another}");
    Some(Violation::new("two-ranks", subject, text, &[*first, *other]))
}

fn twice(subject: &str, answered: &BTreeMap<&NodeName, Answered<'_>>) -> Vec<Violation> {
    let mut holders: BTreeMap<(ClusterRole, Rank), Vec<(&NodeName, &Answered<'_>)>> = BTreeMap::new();
    for (name, of_it) in answered {
        if let Some((_, rank)) = of_it.ranks.first() {
            holders.entry((of_it.role, *rank)).or_default().push((*name, of_it));
        }
    }
    let mut violations = Vec::new();
    for ((_, rank), mut holders) in holders {
        holders.sort_by_key(|(_, of_it)| of_it.ranks[0].0.completed);
        for pair in holders.windows(2) {
            let [(name, before), (another, after)] = pair else { continue };
            let (first, second) = (before.ranks[0].0, after.ranks[0].0);
            if before.over.is_none_or(|over| over >= second.completed) {
                let text = format!("nodes {name} and {another} both have rank {rank}");
                violations.push(Violation::new("rank-twice", subject, text, &[first, second]));
            }
        }
    }
    violations
}
