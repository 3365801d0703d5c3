//! Signs of life as they are told to the leader.

use bytes::Bytes;
use prost::Message as _;
use tripod_gateway::{BeatAnswer, Channel, Conversation, Future, Gateway, Outage};

use super::Beat;
use super::wire::{Report, Verdicts};

/// Beats, and what the leader says to each.
pub(super) struct Beats {
    gateway: Gateway,
}

impl Beats {
    pub(super) fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }
}

impl Conversation for Beats {
    type Question = Beat;
    type Answer = BeatAnswer;

    fn encode<'a>(&self, questions: impl Iterator<Item = &'a Beat>) -> Bytes {
        Report::of(questions.copied()).encode()
    }

    fn ask(&self, batch: Bytes) -> Future<Result<Bytes, Outage>> {
        let gateway = self.gateway.clone();
        Box::pin(async move { gateway.ask_leader(Channel::RAY, &batch).await })
    }

    fn decode(&self, answers: Bytes, expected: usize) -> Result<Vec<BeatAnswer>, String> {
        let verdicts =
            Verdicts::decode(answers).map_err(|error| format!("the leader's verdicts: {error}"))?;
        let told: Vec<BeatAnswer> = verdicts.told.into_iter().map(BeatAnswer::from).collect();
        if told.len() == expected {
            return Ok(told);
        }
        Err(format!("the leader gave {} verdicts for {expected} signs of life", told.len()))
    }
}
