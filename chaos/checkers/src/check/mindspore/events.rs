//! Events: what a node tells all.

use std::collections::BTreeMap;

use super::seen::{Cluster, Life, contradiction};
use crate::check::Violation;
use crate::history::{ClusterNode, Operation};

pub(super) fn check(subject: &str, cluster: &Cluster<'_>) -> Vec<Violation> {
    let told: BTreeMap<u32, &Operation> =
        cluster.lives.values().flat_map(|life| &life.tells).map(|(tell, event)| (*event, *tell)).collect();
    let mut violations = Vec::new();
    let mut orders: Vec<Vec<(&Operation, u32)>> = Vec::new();
    for (node, life) in &cluster.lives {
        let order = life.heard_first();
        violations.extend(from_nowhere(subject, node, &order, &told));
        violations.extend(before_its_time(subject, node, &order, &told));
        orders.push(order);
    }
    violations.extend(lost(subject, cluster, &told));
    for (place, one) in orders.iter().enumerate() {
        for other in &orders[place + 1..] {
            violations.extend(two_orders(subject, one, other));
        }
    }
    violations
}

/// Heard, and told by nobody of this cluster.
fn from_nowhere(
    subject: &str,
    node: &ClusterNode,
    heard: &[(&Operation, u32)],
    told: &BTreeMap<u32, &Operation>,
) -> Option<Violation> {
    let is_unknown =
        |hear: &Operation, event: &u32| told.get(event).is_none_or(|tell| tell.invoked >= hear.completed);
    let (hear, event) = heard.iter().find(|(hear, event)| is_unknown(hear, event))?;
    let text = format!("node {} heard {event}, which nobody in its cluster had told", node.name);
    Some(Violation::new("event-from-nowhere", subject, text, &[*hear]))
}

/// Heard behind one that began when this one was answered already.
fn before_its_time(
    subject: &str,
    node: &ClusterNode,
    heard: &[(&Operation, u32)],
    told: &BTreeMap<u32, &Operation>,
) -> Option<Violation> {
    let mut newest: Option<(u32, &Operation)> = None;
    for (hear, event) in heard {
        let Some(tell) = told.get(event).copied() else { continue };
        if let Some((before, later)) = newest
            && tell.acknowledged()
            && tell.completed < later.invoked
        {
            let text = format!("node {} heard {before} before {event}, which was told first", node.name);
            return Some(Violation::new("event-out-of-order", subject, text, &[tell, later, *hear]));
        }
        if newest.is_none_or(|(_, later)| later.invoked < tell.invoked) {
            newest = Some((*event, tell));
        }
    }
    None
}

/// What is in the log surely: it was answered, or somebody heard it. Who knew of the others before it was told, and stayed
/// until all were told that they have finished, must have heard it.
fn lost(subject: &str, cluster: &Cluster<'_>, told: &BTreeMap<u32, &Operation>) -> Vec<Violation> {
    let heard_by_any =
        |event: u32| cluster.lives.values().any(|life| life.heard.iter().any(|(_, heard)| *heard == event));
    let in_the_log = told.iter().filter(|(event, tell)| tell.acknowledged() || heard_by_any(**event));
    let lost = in_the_log.filter_map(|(event, tell)| {
        let missed = |life: &Life<'_>| {
            let stayed = life.ended.is_none() && life.released.is_some();
            let knew = life.entered().is_some_and(|entered| entered < tell.invoked);
            stayed && knew && !life.heard.iter().any(|(_, heard)| heard == event)
        };
        let (node, life) = cluster.lives.iter().find(|(_, life)| missed(life))?;
        let text = format!("node {} never heard {event}, which was told when it was there", node.name);
        let shown: Vec<&Operation> = [Some(*tell), life.released].into_iter().flatten().collect();
        Some(Violation::new("event-lost", subject, text, &shown))
    });
    lost.collect()
}

fn two_orders(subject: &str, one: &[(&Operation, u32)], other: &[(&Operation, u32)]) -> Option<Violation> {
    let events = |heard: &[(&Operation, u32)]| heard.iter().map(|(_, event)| *event).collect::<Vec<_>>();
    let (first, second) = contradiction(&events(one), &events(other))?;
    let heard_of = |heard: &&(&Operation, u32)| heard.1 == first || heard.1 == second;
    let shown: Vec<&Operation> =
        one.iter().filter(heard_of).chain(other.iter().filter(heard_of)).map(|(hear, _)| *hear).collect();
    let text = format!("one node heard {second} before {first}, and another {first} before {second}");
    Some(Violation::new("event-out-of-order", subject, text, &shown))
}
