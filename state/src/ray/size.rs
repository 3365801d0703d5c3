//! What a scheduler takes beside its tables of things that differ in size.

use crate::ids::TimeMs;
use crate::memory::{all_inside, of_list, of_map, of_set, of_shared};
use crate::ray::Ray;
use crate::ray::cancel::Cancelling;
use crate::ray::ids::{ExportId, ObjectId, OperationId, StoreId, WorkerId};
use crate::ray::queue::{Far, Near, Waiting};
use crate::ray::report::FailedTask;

all_inside!(StoreId, WorkerId, OperationId, ObjectId, ExportId);

impl Ray {
    /// What is of one size each, and what is derived.
    pub(crate) fn around(&self) -> u64 {
        let kept = [
            of_list::<WorkerId>(self.idle.len()),
            of_map::<WorkerId, u32>(self.beside.len()),
            of_map::<OperationId, Cancelling>(self.cancelling.len()),
            of_map::<OperationId, Option<WorkerId>>(self.watched.len()),
            of_map::<(WorkerId, ObjectId), u64>(self.references.len()),
            of_map::<ObjectId, ObjectId>(self.gone.len()),
            of_set::<(ObjectId, StoreId, ObjectId)>(self.notices.len()),
            of_set::<(ObjectId, StoreId)>(self.wanted.len()),
            of_shared::<FailedTask>().saturating_mul(self.failed.len() as u64),
            self.failed_bytes,
            self.outbox.bytes(),
        ];
        kept.into_iter().fold(self.index_bytes(), u64::saturating_add)
    }

    fn index_bytes(&self) -> u64 {
        let index = &self.index;
        let (queue, locations) = (&index.queue, &index.locations);
        let derived = [
            index.trees.bytes(),
            of_map::<OperationId, Waiting>(queue.waiting.len()),
            of_set::<(ObjectId, OperationId)>(queue.users.len()),
            of_set::<Far>(queue.ready.len()),
            of_set::<Near>(queue.near.len()),
            of_set::<(TimeMs, OperationId)>(queue.delayed.len()),
            of_set::<(StoreId, ObjectId)>(locations.held.len()),
            of_set::<(StoreId, ObjectId)>(locations.arriving.len()),
            of_set::<(StoreId, ObjectId, StoreId)>(locations.leaving.len()),
            of_set::<(ObjectId, OperationId)>(index.getters.len()),
            of_set::<(WorkerId, OperationId)>(index.worker_gets.len()),
            of_set::<(StoreId, OperationId)>(index.reported.len()),
            of_set::<(WorkerId, ObjectId)>(index.unwritten.len()),
            index.lineage.held(),
        ];
        derived.into_iter().fold(0, u64::saturating_add)
    }
}
