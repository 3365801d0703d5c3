//! What every worker is sent before its tasks.

use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::ray::act::Act;
use crate::ray::answer::Answer;
use crate::ray::command::Role;
use crate::ray::ids::{ExportId, FunctionName, WorkerId};
use crate::ray::limits::{EXPORT_BYTES_MAX, EXPORTS_MAX, at_most};
use crate::ray::order::Order;
use crate::ray::refusal::Refusal;

/// An exported function or reusable variable.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Export {
    /// The name of a variable; functions have theirs inside.
    pub(crate) variable: Option<FunctionName>,
    pub(crate) body: Bytes,
}

/// All exports, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Exports {
    pub(crate) next: ExportId,
    list: OrdMap<ExportId, Arc<Export>>,
    /// Derived.
    bytes: u64,
}

impl Exports {
    pub(crate) fn get(&self, id: ExportId) -> Option<&Export> {
        self.list.get(&id).map(Arc::as_ref)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&ExportId, &Arc<Export>)> {
        self.list.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn restore(&mut self, id: ExportId, export: Arc<Export>) {
        self.bytes += export.body.len() as u64;
        self.list.insert(id, export);
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
        at_most("exports", self.ray.exports.len() as u64 + 1, EXPORTS_MAX)?;
        at_most("bytes of exports", self.ray.exports.bytes + export.body.len() as u64, EXPORT_BYTES_MAX)?;
        let id = self.ray.exports.next;
        self.ray.exports.next.0 += 1;
        self.ray.exports.restore(id, Arc::new(export));
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
