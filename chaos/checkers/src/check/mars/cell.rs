//! The cells of a mutable tensor, each for itself: every write takes effect at one moment between its beginning and its end,
//! and a read as of a time sees the write of the latest timestamp that is not after it, of equal ones the last to take
//! effect. When the tensor is sealed it takes no further writes, and its values are those of that moment. A store that has
//! sealed it answers reads as of no later time than the seal's; one that has another copy, and was not asked to, may go on
//! answering as of any.
//!
//! All values are different, so that a read names its write. A write of which nobody knows whether it took effect, and that
//! nobody read, may be left out of every order; one that somebody read took effect before that read ended. What is left
//! must all come, and the search is Wing and Gong's, with the sets and states that were seen remembered as Lowe does.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::seen::{OfCell, Tensor};
use crate::check::Violation;
use crate::history::{Micros, Operation, TensorName, TensorState, Timestamp, Value};

/// Something that stands in the order.
#[derive(Clone, Copy)]
struct Item<'a> {
    operation: &'a Operation,
    action: Action,
    from: Micros,
    until: Micros,
}

#[derive(Clone, Copy)]
enum Action {
    Write {
        at: Timestamp,
        value: Value,
    },
    Read {
        at: Option<Timestamp>,
        value: Option<Value>,
    },
    /// Nothing is written after it. `value`: what the cell was then as of `at`, if both are known.
    Seal {
        at: Option<Option<Timestamp>>,
        value: Option<Option<Value>>,
    },
}

/// The seal of a tensor, if it took effect.
#[derive(Clone, Copy)]
struct Sealed<'a> {
    operation: &'a Operation,
    from: Micros,
    until: Micros,
    /// As of when, if it is known.
    at: Option<Option<Timestamp>>,
}

/// The last write of each timestamp that took effect, and whether it is over with writing.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct State {
    written: BTreeMap<Timestamp, Value>,
    /// As of when, if it is known.
    sealed: Option<Option<Option<Timestamp>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Order,
    NoOrder,
    /// The budget is used up.
    Unknown,
}

/// What is wrong with the tensor's cells, and the cells of which nobody knows.
pub(super) fn check(name: &TensorName, tensor: &Tensor<'_>, steps_max: u64) -> (Vec<Violation>, Vec<String>) {
    let (mut violations, mut undecided) = (Vec::new(), Vec::new());
    let seal = sealed(tensor);
    for (number, cell) in &tensor.cells {
        let subject = format!("cell {number} of tensor {name}");
        if let Some(violation) = of_nobody(&subject, cell).or_else(|| changed(&subject, cell)) {
            violations.push(violation);
            continue;
        }
        let items = |end| items(cell, seal, end);
        match search(&items(Micros(u64::MAX)), steps_max) {
            Found::Order => {}
            Found::NoOrder => violations.push(explain(&subject, cell, &items, steps_max)),
            Found::Unknown => undecided.push(subject),
        }
    }
    (violations, undecided)
}

/// A value that nobody has written.
fn of_nobody(subject: &str, cell: &OfCell<'_>) -> Option<Violation> {
    let reads = cell.reads.iter().map(|read| (read.operation, read.value));
    let mut reads = reads.chain(cell.sealed.iter().copied());
    let written = |value: Value, read: &Operation| {
        cell.writes.iter().any(|write| write.value == value && write.operation.invoked <= read.completed)
    };
    let (read, _) = reads.find(|(read, value)| value.is_some_and(|value| !written(value, read)))?;
    let text = "a value was read that nobody had written".to_owned();
    Some(Violation::new("value-from-nowhere", subject, text, &[read]))
}

/// What is sealed does not change.
fn changed(subject: &str, cell: &OfCell<'_>) -> Option<Violation> {
    let (first, value) = cell.sealed.first()?;
    let (other, _) = cell.sealed.iter().find(|(_, other)| other != value)?;
    let text = "it was sealed with one value, and then read with another one".to_owned();
    Some(Violation::new("sealed-changed", subject, text, &[*first, *other]))
}

/// When the tensor was sealed, between its first attempt and the first who knew.
fn sealed<'a>(tensor: &Tensor<'a>) -> Option<Sealed<'a>> {
    let found = tensor.found.iter().filter(|(_, seen)| seen.state == TensorState::Sealed);
    let told = tensor.sealed().map(|(seal, _)| seal).chain(found.map(|(found, _)| *found));
    let read = tensor.cells.values().flat_map(|cell| &cell.sealed).map(|(read, _)| *read);
    let known = told.chain(read).min_by_key(|operation| operation.completed)?;
    let (first, _) = tensor.seals.iter().min_by_key(|(seal, _)| seal.invoked)?;
    let acknowledged = tensor.sealed().next().map(|(_, at)| at);
    let all: HashSet<Option<Timestamp>> = tensor.seals.iter().map(|(_, at)| *at).collect();
    let only = all.iter().next().copied().filter(|_| all.len() == 1);
    let at = acknowledged.or(only);
    Some(Sealed { operation: known, from: first.invoked, until: known.completed, at })
}

/// What was known of a cell at that moment, by the moments at which it began.
fn items<'a>(cell: &OfCell<'a>, seal: Option<Sealed<'a>>, end: Micros) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    let mut read: HashMap<Value, Micros> = HashMap::new();
    for seen in cell.reads.iter().filter(|read| read.operation.completed <= end) {
        let operation = seen.operation;
        let action = Action::Read { at: seen.at, value: seen.value };
        items.push(Item { operation, action, from: operation.invoked, until: operation.completed });
        note(&mut read, seen.value, operation.completed);
    }
    if let Some(seal) = seal.filter(|seal| seal.until <= end) {
        // Whoever reads a sealed cell sees how it was at the seal.
        let mut sealed =
            cell.sealed.iter().filter(|(read, _)| read.completed <= end).map(|(_, value)| *value);
        let value = seal.at.and_then(|_| sealed.next_back());
        let action = Action::Seal { at: seal.at, value };
        items.push(Item { operation: seal.operation, action, from: seal.from, until: seal.until });
        note(&mut read, value.flatten(), seal.until);
    }
    for write in &cell.writes {
        let operation = write.operation;
        let answered =
            (operation.acknowledged() && operation.completed <= end).then_some(operation.completed);
        let first_read = read.get(&write.value).copied();
        let Some(until) = answered.into_iter().chain(first_read).min() else { continue };
        let action = Action::Write { at: write.at, value: write.value };
        items.push(Item { operation, action, from: operation.invoked, until });
    }
    items.sort_by_key(|item| (item.from, item.operation.id));
    items
}

fn note(read: &mut HashMap<Value, Micros>, value: Option<Value>, completed: Micros) {
    if let Some(value) = value {
        let first = read.entry(value).or_insert(completed);
        *first = completed.min(*first);
    }
}

impl State {
    fn as_of(&self, at: Option<Timestamp>) -> Option<Value> {
        let last = match at {
            Some(at) => self.written.range(..=at).next_back(),
            None => self.written.last_key_value(),
        };
        last.map(|(_, value)| *value)
    }

    /// Whether a store that has sealed it answers a read so.
    fn as_of_seal(&self, at: Option<Timestamp>, value: Option<Value>) -> bool {
        match self.sealed {
            None | Some(Some(None)) => false,
            Some(Some(Some(sealed))) => self.as_of(Some(at.map_or(sealed, |at| at.min(sealed)))) == value,
            // As of some time.
            Some(None) => value.is_none_or(|value| self.written.values().any(|written| *written == value)),
        }
    }

    /// The cell afterwards; `None`: that could not have come of it now.
    fn after(&self, action: &Action) -> Option<Self> {
        match action {
            Action::Write { .. } if self.sealed.is_some() => None,
            Action::Write { at, value } => {
                let mut after = self.clone();
                after.written.insert(*at, *value);
                Some(after)
            }
            Action::Read { at, value } => {
                let fits = self.as_of(*at) == *value || self.as_of_seal(*at, *value);
                fits.then(|| self.clone())
            }
            Action::Seal { at, value } => {
                let fits = value.is_none_or(|value| self.as_of(at.flatten()) == value);
                fits.then(|| Self { sealed: Some(*at), ..self.clone() })
            }
        }
    }
}

/// Looks for an order of the items, which are sorted by the moments at which they began.
fn search(items: &[Item<'_>], steps_max: u64) -> Found {
    let mut steps = 0;
    let mut seen: HashSet<(Vec<u64>, State)> = HashSet::new();
    let mut ways = vec![(Placed::none(items.len()), State::default())];
    while let Some((mut placed, state)) = ways.pop() {
        let candidates = loop {
            let candidates = placed.candidates(items);
            // A read changes nothing: if it can come now, it may.
            let read = candidates.iter().copied().find(|place| {
                let action = &items[*place].action;
                matches!(action, Action::Read { .. }) && state.after(action).is_some()
            });
            let Some(read) = read else { break candidates };
            placed.add(read);
        };
        if placed.is_all(items.len()) {
            return Found::Order;
        }
        if !seen.insert((placed.bits.clone(), state.clone())) {
            continue;
        }
        for place in candidates {
            steps += 1;
            if steps > steps_max {
                return Found::Unknown;
            }
            if let Some(after) = state.after(&items[place].action) {
                let mut next = placed.clone();
                next.add(place);
                ways.push((next, after));
            }
        }
    }
    Found::NoOrder
}

/// The items that stand in the order.
#[derive(Clone)]
struct Placed {
    bits: Vec<u64>,
    /// All before it stand there.
    first: usize,
}

impl Placed {
    fn none(items: usize) -> Self {
        Self { bits: vec![0; items.div_ceil(64)], first: 0 }
    }

    fn has(&self, place: usize) -> bool {
        (self.bits[place / 64] >> (place % 64)) & 1 == 1
    }

    fn add(&mut self, place: usize) {
        self.bits[place / 64] |= 1 << (place % 64);
        while self.first < self.bits.len() * 64 && self.has(self.first) {
            self.first += 1;
        }
    }

    fn is_all(&self, items: usize) -> bool {
        self.first >= items
    }

    /// Those that may come next: no other one must have come before they began.
    fn candidates(&self, items: &[Item<'_>]) -> Vec<usize> {
        let mut candidates = Vec::new();
        let mut deadline = Micros(u64::MAX);
        for (place, item) in items.iter().enumerate().skip(self.first).filter(|(place, _)| !self.has(*place))
        {
            if item.from > deadline {
                break;
            }
            deadline = deadline.min(item.until);
            candidates.push(place);
        }
        candidates.retain(|place| items[*place].from <= deadline);
        candidates.sort_by_key(|place| std::cmp::Reverse(items[*place].until));
        candidates
    }
}

/// The first operation at whose end no order explained what had been told.
fn explain<'a>(
    subject: &str,
    cell: &OfCell<'a>,
    items: &impl Fn(Micros) -> Vec<Item<'a>>,
    steps_max: u64,
) -> Violation {
    let mut ends: Vec<&Operation> = items(Micros(u64::MAX)).iter().map(|item| item.operation).collect();
    ends.sort_by_key(|operation| operation.completed);
    let culprit =
        ends.iter().find(|operation| search(&items(operation.completed), steps_max) == Found::NoOrder);
    let Some(culprit) = culprit.or(ends.last()) else {
        return Violation::new("no-order", subject, "no order explains it".to_owned(), &[]);
    };
    // What had been acknowledged last, which it should have seen.
    let before = cell.writes.iter().map(|write| write.operation);
    let before = before.filter(|write| write.acknowledged() && write.completed < culprit.invoked);
    let last = before.max_by_key(|write| write.completed);
    let text = format!(
        "no order of its operations explains operation {} and what had been told before it",
        culprit.id
    );
    let shown: Vec<&Operation> = last.into_iter().chain([*culprit]).collect();
    Violation::new("no-order", subject, text, &shown)
}
