//! What the leader's front end keeps in memory of peers: who was heard when, how full stores are, and what cannot come to
//! them. Nothing of it is replicated: a new leader gives everybody time anew.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message as _;
use tripod_gateway::Liveness;
use tripod_state::ids::JobId;
use tripod_state::ray::{self, Peer};

use super::unfit::Unfits;
use super::wire::{Report, StoreUsage, Verdicts};
use super::{Beat, Unfit, Usage};
use crate::engine::Patience;

/// Of all jobs. Empty on nodes that do not lead.
#[derive(Default)]
pub(crate) struct PeerMemory {
    liveness: Liveness<Patience, Usage>,
    unfits: Mutex<HashMap<JobId, Unfits>>,
}

impl PeerMemory {
    /// Forgets all of a job's peers and watches nobody of it until some are added.
    pub(crate) fn begin(&self, job: JobId, patience: Patience) {
        self.liveness.begin(job, patience);
        self.unfits.lock().insert(job, Unfits::default());
    }

    pub(crate) fn end(&self, job: JobId) {
        self.liveness.end(job);
        self.unfits.lock().remove(&job);
    }

    /// Who was heard when.
    pub(crate) fn liveness(&self) -> &Liveness<Patience, Usage> {
        &self.liveness
    }

    /// Answers another node's front end, or this one's.
    ///
    /// # Errors
    /// The bytes are no report.
    pub(crate) fn answer(&self, report: Bytes) -> Result<Bytes, String> {
        let report = Report::decode(report).map_err(|error| format!("signs of life: {error}"))?;
        let hear = |beat: Beat| self.liveness.hear(beat.job, beat.peer, beat.usage);
        let told = report.beats.into_iter().map(|beat| hear(beat.into()).into()).collect();
        report.unfit.into_iter().for_each(|unfit| self.note_unfit(unfit.into()));
        let usage = report.usage_of.map(|job| self.usage(JobId(job))).unwrap_or_default();
        Ok(Verdicts { told, usage }.encode_to_vec().into())
    }

    /// An object cannot come to a store.
    fn note_unfit(&self, Unfit { job, object, store }: Unfit) {
        if let Some(unfits) = self.unfits.lock().get_mut(&job) {
            unfits.note(object, store);
        }
    }

    /// What cannot come to stores of a job.
    pub(crate) fn unfit(&self, job: JobId) -> Arc<ray::Unfit> {
        self.unfits.lock().get_mut(&job).map(Unfits::now).unwrap_or_default()
    }

    fn usage(&self, job: JobId) -> Vec<StoreUsage> {
        let told = self.liveness.notes(job).into_iter().filter_map(|(peer, usage)| match peer {
            Peer::Store(store) => Some(StoreUsage { store: store.0, usage: usage.into() }),
            Peer::Worker(_) => None,
        });
        told.collect()
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ray::ids::{ObjectId, StoreId, WorkerId};

    use super::*;

    const JOB: JobId = JobId(1);

    #[test]
    fn a_report_is_heard_noted_and_answered_and_forgotten_with_its_job() {
        let (memory, store, worker) =
            (PeerMemory::default(), Peer::Store(StoreId(2)), Peer::Worker(WorkerId(3)));
        memory.begin(JOB, Patience::default());
        memory.liveness().watch(JOB, &[(store, true), (worker, true)], None);
        let usage = Usage { used_bytes: 1, capacity_bytes: 2, spilled_bytes: 3 };
        let beats = [
            Beat { job: JOB, peer: store, usage: Some(usage) },
            Beat { job: JOB, peer: worker, usage: Some(usage) },
            Beat { job: JobId(9), peer: worker, usage: None },
        ];
        let report = Report { usage_of: Some(JOB.0), ..Report::of(beats) };
        let told = || Verdicts::decode(memory.answer(report.encode()).unwrap()).unwrap();
        let watched: Vec<bool> =
            told().told.into_iter().map(|told| tripod_gateway::BeatAnswer::from(told).watched).collect();
        assert_eq!(watched, [true, true, false]);
        let stores: Vec<u64> = told().usage.into_iter().map(|told| told.store).collect();
        assert_eq!(stores, [2], "a worker has no room that it could tell");

        let unfit = Unfit { job: JOB, object: ObjectId(5), store: StoreId(2) };
        memory.answer(Report::of_unfit([unfit]).encode()).unwrap();
        assert_eq!(*memory.unfit(JOB), [(ObjectId(5), StoreId(2))].into_iter().collect());
        memory.end(JOB);
        assert_eq!(*memory.unfit(JOB), ray::Unfit::default());
        assert!(told().usage.is_empty());
    }
}
