//! Signs of life as they are told to the leader.

use bytes::Bytes;
use prost::Message as _;
use tripod_gateway::{Channel, Conversation, Future, Gateway, Outage};

use super::Sign;
use super::wire::{Heard, Report};

/// Beats; the leader says only that it heard them.
pub(super) struct Beats {
    gateway: Gateway,
}

impl Beats {
    pub(super) fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }
}

impl Conversation for Beats {
    type Question = Sign;
    type Answer = ();

    fn encode<'a>(&self, questions: impl Iterator<Item = &'a Sign>) -> Bytes {
        Report::of(questions.copied()).encode_to_vec().into()
    }

    fn ask(&self, batch: Bytes) -> Future<Result<Bytes, Outage>> {
        let gateway = self.gateway.clone();
        Box::pin(async move { gateway.ask_leader(Channel::MINDSPORE, &batch).await })
    }

    fn decode(&self, answers: Bytes, expected: usize) -> Result<Vec<()>, String> {
        let Heard { beats } =
            Heard::decode(answers).map_err(|error| format!("the leader's answer: {error}"))?;
        if usize::try_from(beats) == Ok(expected) {
            return Ok(vec![(); expected]);
        }
        Err(format!("the leader heard {beats} of {expected} signs of life"))
    }
}
