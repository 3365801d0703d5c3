//! Sets of heartbeats as they are asked of the leader.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use super::Pulse;
use super::set::{BEATS_OF_A_SET_MAX, BeatSetId, SetBeat, SetQuestion, SetTold, SetWord};
use super::set_wire::{decode_words, encode_sets};
use crate::backend::{Future, Replica};
use crate::liveness::Conversation;
use crate::outage::Outage;

/// How long the leader's word on a set is waited for. After that each heartbeat is told by itself, for which there is an
/// answer without a leader, too.
const WORD_LIMIT: Duration = Duration::from_secs(1);

/// What was made of sets, and the leader's word on each.
pub(super) struct Sets {
    backend: Arc<dyn Replica>,
}

impl Sets {
    pub(super) fn new(backend: Arc<dyn Replica>) -> Self {
        Self { backend }
    }
}

impl Conversation for Sets {
    type Question = SetQuestion;
    type Answer = SetWord;

    fn encode<'a>(&self, questions: impl Iterator<Item = &'a SetQuestion>) -> Bytes {
        encode_sets(questions)
    }

    fn ask(&self, batch: Bytes) -> Future<Result<Bytes, Outage>> {
        let asking = self.backend.ask_leader(batch);
        Box::pin(async move { asking.await.map_err(Outage::of_question) })
    }

    fn decode(&self, answers: Bytes, expected: usize) -> Result<Vec<SetWord>, String> {
        decode_words(answers, expected)
    }
}

impl Pulse {
    /// Has the leader keep a set in place of the session's last one. None of its heartbeats counts as made.
    pub(crate) async fn keep(&self, id: BeatSetId, beats: Vec<SetBeat>) -> SetWord {
        if beats.is_empty() || beats.len() > BEATS_OF_A_SET_MAX {
            return SetWord::Unknown;
        }
        let told = SetTold::Members(beats.into_iter().map(Into::into).collect());
        let question = SetQuestion { id, told };
        // Long ones go each by itself: many would be more than a message between nodes has room for.
        let asking = self.backend.ask_leader(encode_sets(std::iter::once(&question)));
        match timeout(WORD_LIMIT, asking).await {
            Ok(Ok(answer)) => {
                let words = decode_words(answer, 1);
                words.ok().and_then(|words| words.first().copied()).unwrap_or(SetWord::Unknown)
            }
            Ok(Err(_)) | Err(_) => SetWord::Unknown,
        }
    }

    /// Those heartbeats of a set were made again that `made` says.
    pub(crate) async fn again(&self, id: BeatSetId, made: Bytes) -> SetWord {
        if made.len() > BEATS_OF_A_SET_MAX.div_ceil(8) {
            return SetWord::Differs;
        }
        let count = match made.len() {
            0 => u64::from(id.count),
            _ => made.iter().map(|byte| u64::from(byte.count_ones())).sum(),
        };
        let asking = self.sets.ask(SetQuestion { id, told: SetTold::Made(made) });
        match timeout(WORD_LIMIT, asking).await {
            Ok(Ok(word)) => {
                // Otherwise each is told by itself, and counted there.
                if word == SetWord::Same {
                    self.beats.fetch_add(count, Ordering::Relaxed);
                }
                word
            }
            Ok(Err(_)) | Err(_) => SetWord::Differs,
        }
    }
}
