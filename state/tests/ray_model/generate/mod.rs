//! Random histories that are mostly valid.
//!
//! A history is a list of [`Choice`]s: numbers that mean something only together with the state of a model. So a
//! history stays a history when a part of it is taken out, which is how a failing one is made short.

mod calls;
mod mistakes;

use tripod_state::ray::Request;
use tripod_state::ray::ids::{ObjectId, WorkerId};

use crate::upstream::Upstream;

/// One step of a history: what to do, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) what: u32,
    pub(crate) seed: u64,
}

/// A request and who says that he sends it.
pub(crate) type Call = (Option<WorkerId>, Request);

/// A small generator of numbers (splitmix64): histories must be the same wherever they run.
#[derive(Debug, Clone)]
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// True once in so many times.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.below(from.len())]) }
    }
}

/// The history of a seed.
pub(crate) fn history(seed: u64) -> Vec<Choice> {
    let mut numbers = Numbers(seed);
    let length = 16 + numbers.below(40);
    (0..length).map(|_| Choice { what: (numbers.next() >> 40) as u32, seed: numbers.next() }).collect()
}

/// What a choice means in a state; nothing, if there is nothing to choose from.
pub(crate) fn calls(model: &Upstream, choice: Choice) -> Vec<Call> {
    let mut here = Here { model, numbers: Numbers(choice.seed) };
    here.calls(choice.what)
}

/// A model's state, to choose from.
struct Here<'a> {
    model: &'a Upstream,
    numbers: Numbers,
}

impl Here<'_> {
    /// A call's sender names himself if his references are his own, and sometimes if they are not.
    fn sender(&mut self, worker: WorkerId) -> Option<WorkerId> {
        let attributed = self.model.worker(worker).attributed;
        (attributed || self.numbers.one_in(3)).then_some(worker)
    }

    fn workers(&self, wanted: impl Fn(WorkerId) -> bool) -> Vec<WorkerId> {
        (0..self.model.workers.len() as u64)
            .map(WorkerId)
            .filter(|id| self.model.worker(*id).alive && wanted(*id))
            .collect()
    }

    /// Any living process: those who submit, put and get.
    fn somebody(&mut self) -> Option<WorkerId> {
        let busy = self.workers(|id| self.model.worker(id).driver || self.model.worker(id).current.is_some());
        let all = self.workers(|_| true);
        if self.numbers.one_in(4) { self.numbers.pick(&all) } else { self.numbers.pick(&busy) }
    }

    fn objects(&self, wanted: impl Fn(ObjectId) -> bool) -> Vec<ObjectId> {
        (0..self.model.objects.len() as u64).map(ObjectId).filter(|id| wanted(*id)).collect()
    }

    fn live_objects(&self) -> Vec<ObjectId> {
        self.objects(|id| !self.model.object(id).deallocated)
    }

    /// Late ones more often: histories should get somewhere.
    fn live_object(&mut self) -> Option<ObjectId> {
        let live = self.live_objects();
        let late = &live[live.len().saturating_sub(6)..];
        if self.numbers.one_in(3) { self.numbers.pick(&live) } else { self.numbers.pick(late) }
    }
}
