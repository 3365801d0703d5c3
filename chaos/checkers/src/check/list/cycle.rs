//! Who came before whom, by the order of the list and by time. A cycle is a contradiction.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};

use super::List;
use crate::check::Violation;
use crate::history::{Element, Key, Micros, Operation};

/// Operations from which the shortest cycle is sought; each search may look at the whole list.
const STARTS_MAX: usize = 50;

/// Operations first, then one node for each moment at which an operation completed. A chain of these moments
/// stands for "before" without an edge for every pair.
struct Graph<'a> {
    operations: Vec<&'a Operation>,
    edges: Vec<Vec<usize>>,
}

/// The shortest cycle that was cheap to find among the operations on `list`.
pub(super) fn check(key: &Key, list: &List<'_>) -> Option<Violation> {
    let graph = Graph::of(list);
    let cycle = graph.cycle()?;
    let shown: Vec<&Operation> =
        cycle.iter().filter_map(|node| graph.operations.get(*node)).copied().collect();
    let names: Vec<String> = shown.iter().map(|operation| operation.id.to_string()).collect();
    let text = format!(
        "by the order of the elements and by time, each of the operations {} came before the next, and the \
        last before the first",
        names.join(", ")
    );
    Some(Violation::new("cycle", key, text, &shown))
}

impl<'a> Graph<'a> {
    fn of(list: &List<'a>) -> Self {
        let order = list.longest().map(|(_, order)| order).unwrap_or_default();
        let mut operations: Vec<&'a Operation> = list.reads.iter().map(|(read, _)| *read).collect();
        let seen: HashSet<Element> = order.iter().copied().collect();
        // An append that nobody saw and nobody acknowledged may never have happened.
        let mut appends: Vec<_> = list
            .appends
            .iter()
            .filter(|(element, append)| append.acknowledged() || seen.contains(element))
            .collect();
        appends.sort_by_key(|(_, append)| append.id);
        let mut place = HashMap::new();
        for (element, append) in appends {
            place.insert(*element, operations.len());
            operations.push(append);
        }
        let mut graph = Self { edges: vec![Vec::new(); operations.len()], operations };
        graph.by_elements(list, &place);
        graph.by_time();
        graph
    }

    fn by_elements(&mut self, list: &List<'a>, place: &HashMap<Element, usize>) {
        let order = list.longest().map(|(_, order)| order).unwrap_or_default();
        for pair in order.windows(2) {
            self.edges[place[&pair[0]]].push(place[&pair[1]]);
        }
        let seen: HashSet<Element> = order.iter().copied().collect();
        // Whatever was acknowledged and is not in the longest read comes after it.
        let later: Vec<usize> =
            place.iter().filter(|(element, _)| !seen.contains(element)).map(|(_, place)| *place).collect();
        if let Some(last) = order.last() {
            self.edges[place[last]].extend(&later);
        }
        for (read, (_, elements)) in list.reads.iter().enumerate() {
            if let Some(last) = elements.last() {
                self.edges[place[last]].push(read);
            }
            match order.get(elements.len()) {
                Some(next) => self.edges[read].push(place[next]),
                None => self.edges[read].extend(&later),
            }
        }
    }

    fn by_time(&mut self) {
        let mut moments: Vec<(Micros, usize)> = self
            .operations
            .iter()
            .enumerate()
            .filter(|(_, operation)| operation.reply().is_some())
            .map(|(node, operation)| (operation.completed, node))
            .collect();
        moments.sort_unstable();
        let base = self.operations.len();
        self.edges.resize(base + moments.len(), Vec::new());
        for (at, (_, node)) in moments.iter().enumerate() {
            self.edges[*node].push(base + at);
            if at > 0 {
                self.edges[base + at - 1].push(base + at);
            }
        }
        for (node, operation) in self.operations.iter().enumerate() {
            let before = moments.partition_point(|(completed, _)| *completed < operation.invoked);
            if before > 0 {
                self.edges[base + before - 1].push(node);
            }
        }
    }

    fn cycle(&self) -> Option<Vec<usize>> {
        let mut incoming = vec![0_usize; self.edges.len()];
        for target in self.edges.iter().flatten() {
            incoming[*target] += 1;
        }
        let mut free: Vec<usize> = (0..self.edges.len()).filter(|node| incoming[*node] == 0).collect();
        while let Some(node) = free.pop() {
            for target in &self.edges[node] {
                incoming[*target] -= 1;
                if incoming[*target] == 0 {
                    free.push(*target);
                }
            }
        }
        let starts = (0..self.operations.len()).filter(|node| incoming[*node] > 0);
        let cycles = starts.filter_map(|start| self.way_back(start, &incoming)).take(STARTS_MAX);
        cycles.min_by_key(|cycle| cycle.iter().filter(|node| **node < self.operations.len()).count())
    }

    /// The shortest way from a node to itself, through nodes that lie on or behind a cycle.
    fn way_back(&self, start: usize, incoming: &[usize]) -> Option<Vec<usize>> {
        let mut from: HashMap<usize, usize> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for target in self.edges[node].iter().copied().filter(|target| incoming[*target] > 0) {
                if target == start {
                    let mut cycle = vec![node];
                    while let Some(before) = from.get(cycle.last().expect("it has one")) {
                        cycle.push(*before);
                    }
                    cycle.reverse();
                    return Some(cycle);
                }
                if let Entry::Vacant(unseen) = from.entry(target) {
                    unseen.insert(node);
                    queue.push_back(target);
                }
            }
        }
        None
    }
}
