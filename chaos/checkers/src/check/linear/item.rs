//! The operations on one register, made ready for the search: who must have taken effect by when.

use std::collections::HashMap;

use super::model::{Action, Content};
use crate::history::{Micros, Operation, Outcome};

static UNKNOWN: Outcome = Outcome::Unknown(String::new());

/// One operation that may stand in the linear order.
#[derive(Debug, Clone)]
pub(super) struct Item<'a> {
    pub(super) operation: &'a Operation,
    pub(super) action: Action,
    pub(super) from: Micros,
    /// When it has taken effect at the latest; `None`: at any time or never.
    pub(super) until: Option<Micros>,
}

/// The items of one register, in the order in which they were invoked. Operations that were invoked after
/// `end` are left out, and those that completed after it are not known yet: so the history looked at that
/// moment.
///
/// Two facts are drawn from values that only one operation writes. Who read such a value proves that its
/// write took effect by then, though its own client may never have learnt it. And values that nobody read are
/// all alike, so that the search does not try the unknown writes in every order.
pub(super) fn prepare<'a>(operations: &[&'a Operation], end: Micros) -> Vec<Item<'a>> {
    let mut items: Vec<Item<'a>> = Vec::with_capacity(operations.len());
    for operation in operations.iter().copied().filter(|operation| operation.invoked <= end) {
        let answered = operation.reply().is_some() && operation.completed <= end;
        // Who has not been answered yet is known only for what it asked.
        let outcome = if answered {
            &operation.outcome
        } else {
            operation.reply().map_or(&operation.outcome, |_| &UNKNOWN)
        };
        let action = Action::of(&operation.call, outcome);
        let Some(action) = action else { continue };
        let until = answered.then_some(operation.completed);
        items.push(Item { operation, action, from: operation.invoked, until });
    }
    items.sort_by_key(|item| (item.from, item.operation.id));
    settle(&mut items);
    items
}

fn settle(items: &mut [Item<'_>]) {
    let mut seen: HashMap<u64, Micros> = HashMap::new();
    for item in items.iter() {
        if let (Some(value), Some(until)) = (item.action.sees(), item.until) {
            let first = seen.entry(value).or_insert(until);
            *first = until.min(*first);
        }
    }
    let mut writers: HashMap<u64, usize> = HashMap::new();
    for value in items.iter().filter_map(|item| item.action.writes()) {
        *writers.entry(value).or_default() += 1;
    }
    for item in items {
        let Some(value) = item.action.writes() else { continue };
        match (seen.get(&value), &mut item.action) {
            (Some(first), _) if writers[&value] == 1 => {
                item.until = Some(item.until.map_or(*first, |until| until.min(*first)));
            }
            (None, Action::Write { content, .. }) => *content = Content::Unread,
            _ => {}
        }
    }
}
