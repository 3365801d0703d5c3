//! The search for a linear order: Wing and Gong's, with the states that were seen remembered as Lowe does.
//!
//! An operation may stand next in the order if no other one that must still come was complete before it was
//! invoked. What the search remembers is which operations stand in the order and what the register then
//! holds: to come there again by another way leads nowhere new. Nor does it if on the earlier way fewer of
//! those were used up that need not come at all.

use std::collections::HashMap;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use super::item::Item;
use super::model::{Action, State};
use crate::history::Micros;

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Order,
    NoOrder,
    /// The budget is used up.
    Unknown,
}

/// The list's end, and what stands before its beginning.
const END: usize = usize::MAX;

struct Search<'a, 'b> {
    items: &'b [Item<'a>],
    /// The items that do not stand in the order yet, by the moment they were invoked: a list in both
    /// directions.
    next: Vec<usize>,
    previous: Vec<usize>,
    first: usize,
    /// A random number for each item that must come. A set of them is remembered by the sum of theirs without
    /// carry: that two sets of one search have the same 128 bits is less likely than that the memory errs.
    marks: Vec<u128>,
    /// For each item that need not come, which of them are interchangeable with it. Those of one class are
    /// used in the order in which they were invoked, so that their number says which ones they are.
    classes: Vec<Option<usize>>,
    /// The items that must come and stand in the order, as the sum of their marks.
    placed: u128,
    /// How many items of each class stand in the order.
    used: Vec<u32>,
    /// How many items must still find their place.
    required: usize,
    /// How many reads that must come and do not stand in the order saw each value.
    readers: HashMap<u64, usize>,
    /// How many items write each value.
    writers: HashMap<u64, usize>,
    /// Whether any item deletes the register.
    deletes: bool,
    /// What was used up on the ways that led to a set of placed items and a state.
    seen: HashMap<(u128, State), Vec<Vec<u32>>>,
}

/// One step of the order that is being tried.
struct Step {
    /// The item that was placed to come here.
    placed: usize,
    /// The state before it.
    before: State,
    /// What else may be placed instead, the best last.
    others: Vec<usize>,
}

/// Looks for an order of `items`, which are sorted by the moment at which they were invoked.
pub(super) fn search(items: &[Item<'_>], steps_max: u64) -> Found {
    let mut search = Search::new(items);
    let mut state = State::new(items.iter().map(|item| item.action.version()).max().unwrap_or(0) + 1);
    let mut steps = 0;
    let mut path: Vec<Step> = Vec::new();
    let mut candidates = search.candidates(state);
    while search.required > 0 {
        if let Some(item) = candidates.pop() {
            steps += 1;
            if steps > steps_max {
                return Found::Unknown;
            }
            let Some(after) = state.after(&items[item].action) else { continue };
            search.place(item);
            let after = search.simplified(after);
            if !search.is_new(after) {
                search.put_back(item);
                continue;
            }
            path.push(Step { placed: item, before: state, others: candidates });
            state = after;
            candidates = search.candidates(state);
        } else {
            let Some(step) = path.pop() else { return Found::NoOrder };
            search.put_back(step.placed);
            (state, candidates) = (step.before, step.others);
        }
    }
    Found::Order
}

impl<'a, 'b> Search<'a, 'b> {
    fn new(items: &'b [Item<'a>]) -> Self {
        let length = items.len();
        // The same marks each time, so that a search of a history is always the same search.
        let mut random = SmallRng::seed_from_u64(length as u64);
        let marks = items.iter().map(|_| u128::from(random.next_u64()) << 64 | u128::from(random.next_u64()));
        let mut kinds: HashMap<Action, usize> = HashMap::new();
        let class = |item: &Item<'a>| {
            let fresh = kinds.len();
            item.until.is_none().then(|| *kinds.entry(item.action).or_insert(fresh))
        };
        let classes = items.iter().map(class).collect();
        let (mut readers, mut writers) = (HashMap::new(), HashMap::new());
        for value in items.iter().filter_map(|item| item.action.sees()) {
            *readers.entry(value).or_default() += 1;
        }
        for value in items.iter().filter_map(|item| item.action.writes()) {
            *writers.entry(value).or_default() += 1;
        }
        Self {
            items,
            next: (1..=length).map(|next| if next == length { END } else { next }).collect(),
            previous: (0..length).map(|at| at.checked_sub(1).unwrap_or(END)).collect(),
            first: if length == 0 { END } else { 0 },
            marks: marks.collect(),
            classes,
            placed: 0,
            used: vec![0; kinds.len()],
            required: items.iter().filter(|item| item.until.is_some()).count(),
            readers,
            writers,
            deletes: items.iter().any(|item| item.action == Action::Delete),
            seen: HashMap::new(),
        }
    }

    /// A value that nobody is left to read need not be told apart from others.
    fn simplified(&self, state: State) -> State {
        match state.value() {
            Some(value) if !self.awaited(value) => state.unread(),
            _ => state,
        }
    }

    /// Whether a read is still to come that saw this value.
    fn awaited(&self, value: u64) -> bool {
        self.readers.get(&value).is_some_and(|readers| *readers > 0)
    }

    /// Whether the search was never here in `state` with as little used up; it was from now on.
    fn is_new(&mut self, state: State) -> bool {
        let ways = self.seen.entry((self.placed, state)).or_default();
        let no_more = |one: &[u32], other: &[u32]| one.iter().zip(other).all(|(one, other)| one <= other);
        if ways.iter().any(|way| no_more(way, &self.used)) {
            return false;
        }
        ways.retain(|way| !no_more(&self.used, way));
        ways.push(self.used.clone());
        true
    }

    /// What may stand next, the best last: what must be placed soonest comes first, what need not be placed
    /// at all comes last.
    ///
    /// If something must come and leaves the register as it is, now and for ever, it alone is the answer:
    /// nothing is lost by placing it now. So it is with whatever only looks, and with writes of values that
    /// nobody is left to read where nobody deletes. And as long as a read is still to come of a value that
    /// nobody will write again, nothing may replace it.
    fn candidates(&self, state: State) -> Vec<usize> {
        let held = state.value().is_some_and(|value| self.writers.get(&value) == Some(&1));
        let mut candidates = Vec::new();
        let mut optional: Vec<usize> = Vec::new();
        let mut deadline = Micros(u64::MAX);
        let mut at = self.first;
        while at != END {
            let item = &self.items[at];
            if item.from > deadline {
                break;
            }
            let possible = !(held && item.action.changes());
            if let Some(until) = item.until {
                let harmless = !item.action.changes() || (!self.deletes && item.action.is_unread());
                if possible && harmless && state.after(&item.action) == Some(state) {
                    return vec![at];
                }
                deadline = deadline.min(until);
                if possible {
                    candidates.push(at);
                }
            } else if possible && item.action.changes() {
                let class = self.classes[at];
                if !optional.iter().any(|other| self.classes[*other] == class) {
                    optional.push(at);
                }
            }
            at = self.next[at];
        }
        candidates.sort_by_key(|at| std::cmp::Reverse(self.items[*at].until));
        optional.reverse();
        optional.extend(candidates);
        optional
    }

    /// Puts an item into the order.
    fn place(&mut self, item: usize) {
        let (previous, next) = (self.previous[item], self.next[item]);
        if previous == END {
            self.first = next;
        } else {
            self.next[previous] = next;
        }
        if next != END {
            self.previous[next] = previous;
        }
        if let Some(class) = self.classes[item] {
            self.used[class] += 1;
        } else {
            self.placed ^= self.marks[item];
            self.required -= 1;
        }
        if let Some(readers) = self.read_by(item) {
            *readers -= 1;
        }
    }

    /// Undoes the last [`Search::place`] that is not undone yet.
    fn put_back(&mut self, item: usize) {
        let (previous, next) = (self.previous[item], self.next[item]);
        if previous == END {
            self.first = item;
        } else {
            self.next[previous] = item;
        }
        if next != END {
            self.previous[next] = item;
        }
        if let Some(class) = self.classes[item] {
            self.used[class] -= 1;
        } else {
            self.placed ^= self.marks[item];
            self.required += 1;
        }
        if let Some(readers) = self.read_by(item) {
            *readers += 1;
        }
    }

    /// How many reads are still to come of the value that an item read.
    fn read_by(&mut self, item: usize) -> Option<&mut usize> {
        self.readers.get_mut(&self.items[item].action.sees()?)
    }
}
