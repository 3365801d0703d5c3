//! Append lists have one order, lose nothing that was acknowledged, and repeat nothing.
//!
//! Reads show prefixes of that one order, so it is known as far as anybody read. What follows from it and
//! from time (who came before whom) must be free of cycles; this is Elle's way, and for lists it is complete
//! and quick.

mod cycle;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Checked, Rules, Violation};
use crate::history::{Call, Element, History, Key, Operation, Reply};

const CHECKER: &str = "list";

/// What was done to one list.
#[derive(Default)]
struct List<'a> {
    /// Who appends each element, without those that surely had no effect.
    appends: HashMap<Element, &'a Operation>,
    /// Appends that surely had no effect.
    failed: HashMap<Element, &'a Operation>,
    /// Reads that were answered, with what they saw.
    reads: Vec<(&'a Operation, &'a [Element])>,
}

/// Judges each list apart from the others.
#[must_use]
pub fn check(history: &History, _rules: &Rules) -> Checked {
    let mut lists: BTreeMap<&Key, List<'_>> = BTreeMap::new();
    let mut examined = 0;
    for operation in &history.operations {
        match (&operation.call, operation.reply()) {
            (Call::Append { list, element }, _) => {
                examined += 1;
                let entry = lists.entry(list).or_default();
                let side =
                    if operation.outcome.may_have_effect() { &mut entry.appends } else { &mut entry.failed };
                if let Some(first) = side.insert(*element, operation) {
                    let reason = format!(
                        "element {element} of list {list} is appended twice, by operations {} and {}",
                        first.id, operation.id
                    );
                    return Checked::void(CHECKER, examined, reason);
                }
            }
            (Call::ReadList { list }, Some(Reply::Elements(elements))) => {
                examined += 1;
                lists.entry(list).or_default().reads.push((operation, elements));
            }
            _ => {}
        }
    }
    let mut violations = Vec::new();
    for (key, list) in &lists {
        let before = violations.len();
        list.each_read(key, &mut violations);
        list.one_order(key, &mut violations);
        if violations.len() == before {
            violations.extend(cycle::check(key, list));
        }
    }
    Checked::told(CHECKER, examined, violations)
}

impl<'a> List<'a> {
    /// What every read must keep by itself.
    fn each_read(&self, key: &Key, violations: &mut Vec<Violation>) {
        for (read, elements) in &self.reads {
            let seen: BTreeSet<Element> = elements.iter().copied().collect();
            if let Some(element) = first_repeated(elements) {
                let text = format!("operation {} sees element {element} more than once", read.id);
                let mut shown = vec![*read];
                shown.extend(self.appends.get(&element));
                violations.push(Violation::new("duplicate-element", key, text, &shown));
            }
            for element in &seen {
                violations.extend(self.phantom(key, read, *element));
            }
            let lost = self
                .appends
                .iter()
                .filter(|(element, append)| {
                    append.acknowledged() && append.completed < read.invoked && !seen.contains(element)
                })
                .min_by_key(|(_, append)| append.invoked);
            if let Some((element, append)) = lost {
                let text = format!(
                    "element {element} was acknowledged to operation {} before operation {} began, which \
                    does not see it",
                    append.id, read.id
                );
                violations.push(Violation::new("lost-append", key, text, &[append, read]));
            }
        }
    }

    fn phantom(&self, key: &Key, read: &Operation, element: Element) -> Option<Violation> {
        let (text, append) = match (self.appends.get(&element), self.failed.get(&element)) {
            (Some(append), _) if append.invoked > read.completed => {
                (format!("operation {} sees element {element} before anybody appended it", read.id), append)
            }
            (Some(_), _) => return None,
            (None, Some(append)) => {
                let text = format!(
                    "operation {} sees element {element}, though its append, operation {}, surely had no \
                    effect",
                    read.id, append.id
                );
                (text, append)
            }
            (None, None) => {
                let text = format!("operation {} sees element {element}, which nobody appended", read.id);
                return Some(Violation::new("phantom-element", key, text, &[read]));
            }
        };
        Some(Violation::new("phantom-element", key, text, &[append, read]))
    }

    /// Every read is a prefix of the longest one.
    fn one_order(&self, key: &Key, violations: &mut Vec<Violation>) {
        let Some((longest, order)) = self.longest() else { return };
        for (read, elements) in &self.reads {
            let same = elements.iter().zip(order).take_while(|(one, other)| one == other).count();
            if same < elements.len() {
                let text = format!(
                    "operations {} and {} see different orders: at place {same} one sees {} and the other {}",
                    longest.id, read.id, order[same], elements[same]
                );
                violations.push(Violation::new("diverging-order", key, text, &[longest, read]));
            }
        }
    }

    fn longest(&self) -> Option<(&'a Operation, &'a [Element])> {
        self.reads.iter().copied().max_by_key(|(read, elements)| (elements.len(), std::cmp::Reverse(read.id)))
    }
}

fn first_repeated(elements: &[Element]) -> Option<Element> {
    let mut seen = BTreeSet::new();
    elements.iter().copied().find(|element| !seen.insert(*element))
}
