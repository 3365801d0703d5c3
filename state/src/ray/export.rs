//! What every worker is sent before its tasks.
//!
//! A task names its function, and knows its variables by their names: what it finds under a name is what was exported
//! last when it was given to its worker. So a worker that comes needs the last export of each name, in their order,
//! and so do tasks that wait, or run again: none of them refers to an earlier one. Workers that are there are told of
//! each export ahead of the tasks that come after it, so one that was replaced stays until the last of them has it.
//!
//! The name of a function is inside of what is exported, which is opaque. But equal functions have equal names: of
//! those the last one does for all, at its place. A function with another body stays, be it one of the same name.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

use crate::level::Rule;
use crate::memory::{Weigh, Weighed, of_map, of_set, of_text};
use crate::ray::act::Act;
use crate::ray::answer::Answer;
use crate::ray::command::Role;
use crate::ray::ids::{ExportId, FunctionName, WorkerId};
use crate::ray::limits::{EXPORT_BYTES_MAX, EXPORTS_DROPPED_AT_ONCE, EXPORTS_MAX, at_most};
use crate::ray::order::Order;
use crate::ray::outbox::Outbox;
use crate::ray::refusal::Refusal;

/// An exported function or reusable variable.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Export {
    /// The name of a variable; functions have theirs inside.
    pub(crate) variable: Option<FunctionName>,
    pub(crate) body: Bytes,
}

impl Weigh for Export {
    fn outside(&self) -> u64 {
        let name = self.variable.as_ref().map_or(0, |name| of_text(name.0.len()));
        name.saturating_add(of_text(self.body.len()))
    }
}

/// What an export replaces: the earlier ones of the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    /// By its name.
    Variable(FunctionName),
    /// By its body.
    Function(Bytes),
}

impl Export {
    fn subject(&self) -> Subject {
        match &self.variable {
            Some(name) => Subject::Variable(name.clone()),
            None => Subject::Function(self.body.clone()),
        }
    }
}

/// The exports, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Exports {
    pub(crate) next: ExportId,
    list: Weighed<ExportId, Arc<Export>>,
    /// Derived.
    bytes: u64,
    /// Derived.
    last: OrdMap<Subject, ExportId>,
    /// Those that another one came after. Derived.
    replaced: OrdSet<ExportId>,
}

/// As it was when everything in it counted: nodes of all builds agree.
impl Hash for Exports {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.next, &self.list, self.bytes).hash(hasher);
    }
}

impl Exports {
    pub(crate) fn get(&self, id: ExportId) -> Option<&Export> {
        self.list.get(&id).map(Arc::as_ref)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&ExportId, &Arc<Export>)> {
        self.list.iter()
    }

    /// What they take of memory, roughly.
    pub(crate) fn held(&self) -> u64 {
        self.list.bytes().saturating_add(self.around())
    }

    /// The same from all of them.
    pub(crate) fn recounted(&self) -> u64 {
        self.list.recounted().saturating_add(self.around())
    }

    fn around(&self) -> u64 {
        of_map::<Subject, ExportId>(self.last.len()).saturating_add(of_set::<ExportId>(self.replaced.len()))
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn restore(&mut self, id: ExportId, export: Arc<Export>) {
        self.bytes += export.body.len() as u64;
        if let Some(before) = self.last.insert(export.subject(), id) {
            self.replaced.insert(before);
        }
        self.list.insert(id, export);
    }

    fn add(&mut self, export: Export) -> ExportId {
        let id = self.next;
        self.next.0 += 1;
        self.restore(id, Arc::new(export));
        id
    }

    /// Drops exports that were replaced, from the first on, up to one that a worker is still to be told of: the tasks
    /// behind that in the worker's line may need it.
    pub(crate) fn drop_replaced(&mut self, outbox: &Outbox) {
        for _ in 0..EXPORTS_DROPPED_AT_ONCE {
            let Some(id) = self.replaced.get_min().copied().filter(|id| !outbox.is_importing(*id)) else {
                return;
            };
            self.replaced.remove(&id);
            if let Some(export) = self.list.remove(&id) {
                self.bytes -= export.body.len() as u64;
            }
        }
    }

    /// Whether the last export of that name, or the last function, is the same.
    fn repeats(&self, export: &Export) -> bool {
        let mut newest = self.list.values().rev();
        newest.find(|known| known.variable == export.variable).is_some_and(|known| **known == *export)
    }
}

impl Act<'_> {
    /// Workers that asked for a task once are told now, and all others when they do. So what was exported
    /// before an assignment comes before its task.
    pub(crate) fn export(&mut self, export: Export) -> Result<Answer, Refusal> {
        if self.ray.exports.repeats(&export) {
            return Ok(Answer::Done);
        }
        // Cloning shares everything, and what is refused leaves no trace.
        let mut exports = self.ray.exports.clone();
        let id = exports.add(export);
        if self.follows(Rule::LastExports) {
            exports.drop_replaced(&self.ray.outbox);
        }
        at_most("exports", exports.len() as u64, EXPORTS_MAX)?;
        at_most("bytes of exports", exports.bytes, EXPORT_BYTES_MAX)?;
        self.ray.exports = exports;
        let told = self
            .ray
            .workers
            .iter()
            .filter(|(_, worker)| worker.is_alive() && worker.role == Role::Worker && worker.initialised);
        let told: Vec<WorkerId> = told.map(|(worker, _)| *worker).collect();
        for worker in told {
            self.ray.outbox.push(Order::Import { worker, export: id });
        }
        Ok(Answer::Done)
    }

    /// All functions in their order, then all variables in theirs.
    pub(crate) fn replay_exports(&mut self, worker: WorkerId) {
        let of_kind = |function: bool| {
            let list = self.ray.exports.iter();
            let list = list.filter(move |(_, export)| export.variable.is_none() == function);
            list.map(|(id, _)| *id)
        };
        let exports: Vec<ExportId> = of_kind(true).chain(of_kind(false)).collect();
        for export in exports {
            self.ray.outbox.push(Order::Import { worker, export });
        }
    }
}
