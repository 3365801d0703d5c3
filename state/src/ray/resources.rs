//! What tasks need of their workers, and what workers have.
//!
//! Accounting is by worker process: one task runs in a worker at a time, so it has all that the worker has. Tasks that
//! wait are sorted by the least that their workers must offer, their *class*: one look at a class says of all its
//! tasks whether a worker can be given them. Most tasks are of the class that needs nothing in particular.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::memory::{Weigh, Weighed, of_entry, of_map, of_shared, of_text};
use crate::ray::Ray;
use crate::ray::ids::{OperationId, WorkerId};
use crate::ray::limits::{CLASSES_MAX, RESOURCE_MILLI_MAX, RESOURCE_NAME_BYTES_MAX, RESOURCES_MAX, at_most};
use crate::ray::refusal::Refusal;
use crate::ray::register::invalid;

/// Processors of a worker that does not say how many it has, in thousandths.
const CPUS_MILLI: u64 = 1_000;

/// What a task needs of its worker, and when it has its turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Needs {
    /// Of tasks that can run, one of the highest is the next.
    pub priority: i32,
    /// Processors in thousandths; 0: what every worker has.
    pub cpus_milli: u64,
    /// 0: what every worker has.
    pub memory_bytes: u64,
    /// Other things in thousandths, by their names.
    pub named_milli: BTreeMap<String, u64>,
}

/// What a worker has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Offers {
    /// Processors in thousandths.
    pub cpus_milli: u64,
    /// 0: nobody knows, and tasks that ask for memory do not go there.
    pub memory_bytes: u64,
    /// Other things in thousandths, by their names.
    pub named_milli: BTreeMap<String, u64>,
}

impl Default for Offers {
    fn default() -> Self {
        Self { cpus_milli: CPUS_MILLI, memory_bytes: 0, named_milli: BTreeMap::new() }
    }
}

/// The least that a worker must offer; without a value, nothing in particular. That one is the first of all, and as
/// cheap to compare as a number.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Class(Option<Arc<Offers>>);

/// When a task has its turn: high priorities come first.
pub(crate) type Turn = Reverse<i32>;

/// What a queue is sorted by, of one task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Demand {
    pub(crate) class: Class,
    pub(crate) turn: Turn,
}

impl Default for Demand {
    fn default() -> Self {
        Self { class: Class::default(), turn: Reverse(0) }
    }
}

/// What remembered tasks need that need something, or have a priority.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Demands {
    of: OrdMap<OperationId, Demand>,
    /// How many tasks are of each class; equal classes are one in memory. Derived.
    classes: OrdMap<Arc<Offers>, u64>,
    /// What the classes hold. Derived.
    bytes: u64,
}

impl Needs {
    /// Whether they are those of a task that says nothing about them.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// # Errors
    /// [`Refusal`].
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check(self.cpus_milli, &self.named_milli)
    }

    /// The least that a worker must offer.
    pub(crate) fn class(&self) -> Class {
        Class(self.least().map(Arc::new))
    }

    fn least(&self) -> Option<Offers> {
        let Self { priority: _, cpus_milli, memory_bytes, named_milli } = self;
        // Nothing of a thing is no need of it.
        let named = named_milli.iter().filter(|(_, amount)| **amount > 0);
        let named_milli: BTreeMap<String, u64> =
            named.map(|(name, amount)| (name.clone(), *amount)).collect();
        let nothing = *cpus_milli == 0 && *memory_bytes == 0 && named_milli.is_empty();
        let least = Offers { cpus_milli: *cpus_milli, memory_bytes: *memory_bytes, named_milli };
        (!nothing).then_some(least)
    }
}

impl Offers {
    /// Whether they are those of a worker that says nothing about them.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// # Errors
    /// [`Refusal`].
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check(self.cpus_milli, &self.named_milli)
    }

    /// Whether they have all of a class.
    pub(crate) fn hold(&self, class: &Class) -> bool {
        class.0.as_ref().is_none_or(|least| {
            let has = |name: &str| self.named_milli.get(name).copied().unwrap_or(0);
            self.cpus_milli >= least.cpus_milli
                && self.memory_bytes >= least.memory_bytes
                && least.named_milli.iter().all(|(name, amount)| has(name) >= *amount)
        })
    }
}

/// Names and amounts are a client's word.
fn check(cpus_milli: u64, named_milli: &BTreeMap<String, u64>) -> Result<(), Refusal> {
    at_most("named resources", named_milli.len() as u64, RESOURCES_MAX)?;
    let amounts = named_milli.iter().map(|(name, amount)| (name.as_str(), *amount));
    for (name, amount) in amounts.chain([("cpus", cpus_milli)]) {
        if name.is_empty() || name.len() > RESOURCE_NAME_BYTES_MAX {
            let reason = format!("names have 1 to {RESOURCE_NAME_BYTES_MAX} bytes, not {}", name.len());
            return Err(invalid("resources", reason));
        }
        if amount > RESOURCE_MILLI_MAX {
            let reason = format!("at most {RESOURCE_MILLI_MAX} thousandths of {name}, not {amount}");
            return Err(invalid("resources", reason));
        }
    }
    Ok(())
}

impl Class {
    /// Whether every worker has it.
    pub(crate) fn is_default(&self) -> bool {
        self.0.is_none()
    }

    /// For people, in whole ones: `gpu 1.0, memory 4096 bytes`.
    fn shown(&self) -> String {
        let Some(least) = &self.0 else { return "nothing in particular".to_owned() };
        let whole = |name: &str, milli: u64| {
            let text = format!("{}.{:03}", milli / 1_000, milli % 1_000);
            let short = text.trim_end_matches('0');
            format!("{name} {short}{}", if short.ends_with('.') { "0" } else { "" })
        };
        let cpus = (least.cpus_milli > 0).then(|| whole("cpus", least.cpus_milli));
        let memory = (least.memory_bytes > 0).then(|| format!("memory {} bytes", least.memory_bytes));
        let named = least.named_milli.iter().map(|(name, amount)| whole(name, *amount));
        cpus.into_iter().chain(memory).chain(named).collect::<Vec<_>>().join(", ")
    }
}

impl Demands {
    pub(crate) fn of(&self, operation: OperationId) -> Demand {
        // Most schedulers have none.
        if self.of.is_empty() {
            Demand::default()
        } else {
            self.of.get(&operation).cloned().unwrap_or_default()
        }
    }

    /// What a task said that it needs; `None`: nothing.
    pub(crate) fn needs_of(&self, operation: OperationId) -> Option<Needs> {
        self.of.get(&operation).map(Demand::needs)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&OperationId, &Demand)> {
        self.of.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.of.len()
    }

    /// Whether a task that needs this may come: classes are looked at one by one.
    ///
    /// # Errors
    /// [`Refusal::Full`].
    pub(crate) fn check_room(&self, needs: &Needs) -> Result<(), Refusal> {
        match needs.least() {
            Some(least) if !self.classes.contains_key(&least) => {
                at_most("different needs of tasks", self.classes.len() as u64 + 1, CLASSES_MAX)
            }
            _ => Ok(()),
        }
    }

    /// Notes what a task needs, unless that is nothing.
    pub(crate) fn note(&mut self, operation: OperationId, needs: &Needs) {
        if needs.is_default() {
            return;
        }
        let class = Class(needs.least().map(|least| match self.classes.get_key_value(&least) {
            Some((known, _)) => Arc::clone(known),
            None => Arc::new(least),
        }));
        if let Some(least) = &class.0 {
            let tasks = self.classes.entry(Arc::clone(least)).or_insert(0);
            if *tasks == 0 {
                self.bytes = self.bytes.saturating_add(of_class(least));
            }
            *tasks += 1;
        }
        self.of.insert(operation, Demand { class, turn: Reverse(needs.priority) });
    }

    pub(crate) fn forget(&mut self, operation: OperationId) {
        let Some(Demand { class: Class(Some(least)), .. }) = self.of.remove(&operation) else { return };
        let left = self.classes.get(&least).map_or(0, |tasks| tasks.saturating_sub(1));
        if left > 0 {
            self.classes.insert(least, left);
        } else if self.classes.remove(&least).is_some() {
            self.bytes = self.bytes.saturating_sub(of_class(&least));
        }
    }

    /// What they take of memory, roughly.
    pub(crate) fn held(&self) -> u64 {
        self.around().saturating_add(self.bytes)
    }

    /// The same from all of them.
    pub(crate) fn recounted(&self) -> u64 {
        let classes = self.classes.keys().map(|least| of_class(least));
        classes.fold(self.around(), u64::saturating_add)
    }

    fn around(&self) -> u64 {
        of_map::<OperationId, Demand>(self.of.len())
    }
}

impl Demand {
    /// As they were asked for, but for what was asked for in vain.
    pub(crate) fn needs(&self) -> Needs {
        let Reverse(priority) = self.turn;
        match &self.class.0 {
            None => Needs { priority, ..Needs::default() },
            Some(least) => Needs {
                priority,
                cpus_milli: least.cpus_milli,
                memory_bytes: least.memory_bytes,
                named_milli: least.named_milli.clone(),
            },
        }
    }
}

impl std::hash::Hash for Demands {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        self.of.hash(hasher);
    }
}

fn of_class(least: &Offers) -> u64 {
    of_entry::<Arc<Offers>, u64>().saturating_add(of_shared::<Offers>()).saturating_add(least.outside())
}

impl Weigh for Offers {
    fn outside(&self) -> u64 {
        let names = self.named_milli.keys().map(|name| of_text(name.len()));
        names.fold(of_map::<String, u64>(self.named_milli.len()), u64::saturating_add)
    }
}

impl Ray {
    /// What a worker has.
    #[must_use]
    pub fn offers(&self, worker: WorkerId) -> Offers {
        self.offers.get(&worker).map(|offers| Offers::clone(offers)).unwrap_or_default()
    }

    /// What a task needs; `None`: there is no such task.
    #[must_use]
    pub fn needs_of(&self, operation: OperationId) -> Option<Needs> {
        self.entry(operation)?;
        Some(self.demands.needs_of(operation).unwrap_or_default())
    }

    /// Whether a worker has what a task needs.
    pub(crate) fn has_needed(&self, operation: OperationId, worker: WorkerId) -> bool {
        self.holds(worker, &self.demands.of(operation).class)
    }

    /// Whether a worker has all of a class.
    pub(crate) fn holds(&self, worker: WorkerId, class: &Class) -> bool {
        class.is_default()
            || match self.offers.get(&worker) {
                Some(offers) => offers.hold(class),
                None => Offers::default().hold(class),
            }
    }

    /// Whether some living worker has all of a class.
    pub(crate) fn somebody_holds(&self, class: &Class) -> bool {
        let workers = self.workers.iter().filter(|(_, worker)| worker.executes());
        workers.into_iter().any(|(id, _)| self.holds(*id, class))
    }

    /// Why a task that waits cannot be given to anybody, for people; `known` is what was found out of other classes.
    pub(crate) fn wants_in_vain(
        &self,
        operation: OperationId,
        known: &mut BTreeMap<Class, bool>,
    ) -> Option<String> {
        let class = self.demands.of(operation).class;
        if class.is_default() {
            return None;
        }
        let held = *known.entry(class.clone()).or_insert_with(|| self.somebody_holds(&class));
        (!held).then(|| format!("needs {}; no worker has it", class.shown()))
    }
}

/// What workers have that said so.
pub(crate) type OffersByWorker = Weighed<WorkerId, Arc<Offers>>;

#[cfg(test)]
mod tests {
    use super::*;

    fn named(amounts: &[(&str, u64)]) -> BTreeMap<String, u64> {
        amounts.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect()
    }

    #[test]
    fn a_worker_that_says_nothing_has_one_processor_and_no_memory_that_anybody_knows_of() {
        let offers = Offers::default();
        let needs = |cpus_milli, memory_bytes| Needs { cpus_milli, memory_bytes, ..Needs::default() };
        assert!(offers.hold(&needs(0, 0).class()) && offers.hold(&needs(1_000, 0).class()));
        assert!(!offers.hold(&needs(1_001, 0).class()) && !offers.hold(&needs(0, 1).class()));
        let none_of_it = Needs { named_milli: named(&[("gpu", 0)]), ..Needs::default() };
        assert!(none_of_it.class().is_default());
        let some = Needs { named_milli: named(&[("gpu", 1)]), ..Needs::default() };
        assert!(!offers.hold(&some.class()));
    }

    #[test]
    fn what_is_needed_is_shown_in_whole_ones() {
        let needs = Needs {
            cpus_milli: 1_500,
            memory_bytes: 9,
            named_milli: named(&[("gpu", 1_000), ("licence", 5)]),
            ..Needs::default()
        };
        assert_eq!(needs.class().shown(), "cpus 1.5, memory 9 bytes, gpu 1.0, licence 0.005");
    }

    #[test]
    fn equal_classes_are_counted_once_and_go_with_their_last_task() {
        let mut demands = Demands::default();
        let needs = Needs { named_milli: named(&[("gpu", 1_000)]), ..Needs::default() };
        demands.note(OperationId(1), &needs);
        demands.note(OperationId(2), &Needs { priority: 3, ..needs.clone() });
        demands.note(OperationId(3), &Needs::default());
        assert_eq!((demands.len(), demands.classes.len()), (2, 1));
        assert_eq!(demands.needs_of(OperationId(2)).map(|needs| needs.priority), Some(3));
        assert_eq!(demands.held(), demands.recounted());
        demands.forget(OperationId(1));
        assert_eq!(demands.classes.len(), 1);
        demands.forget(OperationId(2));
        assert_eq!(demands, Demands::default());
    }

    #[test]
    fn names_and_amounts_are_bounded() {
        let check = |named_milli| Needs { named_milli, ..Needs::default() }.check();
        assert!(check(named(&[("gpu", RESOURCE_MILLI_MAX)])).is_ok());
        assert!(check(named(&[("gpu", RESOURCE_MILLI_MAX + 1)])).is_err());
        assert!(check(named(&[("", 1)])).is_err());
        let many = (0..=RESOURCES_MAX).map(|number| (number.to_string(), 1)).collect();
        assert!(check(many).is_err());
    }
}
