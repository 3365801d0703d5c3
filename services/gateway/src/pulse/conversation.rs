//! Heartbeats of tasks as they are asked of the leader.

use std::sync::Arc;

use bytes::Bytes;

use super::wire::{decode_verdicts, encode_beats};
use super::{Beat, Verdict};
use crate::backend::{Future, Replica};
use crate::liveness::Conversation;
use crate::outage::Outage;

/// Beats, and what the leader says to each.
pub(super) struct Beats {
    backend: Arc<dyn Replica>,
}

impl Beats {
    pub(super) fn new(backend: Arc<dyn Replica>) -> Self {
        Self { backend }
    }
}

impl Conversation for Beats {
    type Question = Beat;
    type Answer = Verdict;

    fn encode<'a>(&self, questions: impl Iterator<Item = &'a Beat>) -> Bytes {
        encode_beats(questions.copied())
    }

    fn ask(&self, batch: Bytes) -> Future<Result<Bytes, Outage>> {
        let asking = self.backend.ask_leader(batch);
        Box::pin(async move { asking.await.map_err(Outage::of_question) })
    }

    fn decode(&self, answers: Bytes, expected: usize) -> Result<Vec<Verdict>, String> {
        decode_verdicts(answers, expected)
    }
}
