//! One order to seal: told to its store until all is made, refused, or given up. Whoever carries it out may be dropped at any
//! time: what was made is in the log, or the store has it when it is told again.

use std::time::Duration;

use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tripod_gateway::{Consistency, Gateway, Outage};
use tripod_proto::mars::v1 as pb;
use tripod_proto::mars::v1::worker_client::WorkerClient;
use tripod_state::{Command, DomainId, Scope, State, Topic};

use super::BACKOFF;
use super::store::{self, Connect};
use crate::domain::{self, ObjectId, Request, SealOrder};

/// Chunks of one call: what was made is in the log after each.
const CHUNKS_OF_CALL_MAX: usize = 64;
/// Attempts one after the other that bring nothing, before the store is said to have failed: half a minute of pauses. A store
/// whose process is gone is given up by the scheduler before; when it comes again, so does its order.
const ATTEMPTS_MAX: u32 = 20;
/// So long after a store has made an object the scheduler may hear of it, before the store is asked again.
const READY_WITHIN: Duration = Duration::from_secs(1);

/// A chunk of an order: its place, its key, and the object that is to be made of it.
type Wanted = (u32, String, ObjectId);

/// What carries out the orders of one job. Cheap to clone.
#[derive(Clone)]
pub(super) struct Teller {
    pub(super) gateway: Gateway,
    pub(super) connect: Connect,
    pub(super) scope: Scope,
}

/// What came of a call.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    /// The places of chunks that are made.
    made: Vec<u32>,
    /// Why the store will never make some chunk.
    refusal: Option<String>,
    /// Why some chunk is not made yet.
    trouble: Option<String>,
}

impl Teller {
    /// Tells the store until the order is over, and has the log know what came of it.
    pub(super) async fn carry_out(self, order: SealOrder) {
        let mut left: Vec<Wanted> = order.chunks.clone();
        let (mut client, mut backoff, mut attempts) = (None, BACKOFF, 0);
        while !left.is_empty() {
            let next = left.get(..CHUNKS_OF_CALL_MAX).unwrap_or(&left);
            let places: Vec<u32> = next.iter().map(|(place, _, _)| *place).collect();
            let mut told = judge(next, self.tell(&mut client, &order, next).await);
            if !self.came_to_be(next, &told.made).await {
                // The store may have died with them.
                told.made.clear();
                told.note(Code::Unavailable, "it has not told the scheduler of what it made".to_owned());
            }
            let Told { made, refusal, trouble } = told;
            if made.is_empty() {
                attempts += 1;
            } else {
                attempts = 0;
                backoff.reset();
                left.retain(|(place, _, _)| !made.contains(place));
                self.report(&order, made, false).await;
            }
            let lasting = trouble.as_ref().filter(|_| attempts >= ATTEMPTS_MAX).cloned();
            if let Some(why) = refusal.or(lasting) {
                tracing::info!(
                    job = self.scope.job.0,
                    session = order.session,
                    mutable = order.name,
                    epoch = order.epoch,
                    store = order.store,
                    attempts,
                    why,
                    "a store cannot seal; another one that has the chunks is asked, or the epoch ends"
                );
                self.report(&order, places, true).await;
                return;
            }
            if let Some(trouble) = trouble {
                tracing::debug!(
                    job = self.scope.job.0,
                    mutable = order.name,
                    store = order.store,
                    trouble,
                    "a store is told to seal again"
                );
                // Whatever was wrong, another connection may be right.
                client = None;
                backoff.rest().await;
            }
        }
    }

    /// One call, on a connection that is there or is made.
    async fn tell(
        &self,
        client: &mut Option<WorkerClient<Channel>>,
        order: &SealOrder,
        chunks: &[Wanted],
    ) -> Result<Vec<pb::SealedChunk>, Status> {
        let known = match client.take() {
            Some(known) => known,
            None => store::link(&self.connect, &order.store).await?,
        };
        let objects =
            chunks.iter().map(|(_, key, object)| pb::ChunkObject { key: key.clone(), object_id: object.0 });
        let message = pb::SealMutableChunksRequest {
            session_id: order.session.clone(),
            epoch: order.epoch,
            chunks: objects.collect(),
        };
        store::seal(client.insert(known), message).await
    }

    /// Waits until the scheduler knows the objects of the chunks that a store has made: who seals gives the state's word that
    /// they can be had. `false`: it has not heard of all of them in time.
    async fn came_to_be(&self, chunks: &[Wanted], made: &[u32]) -> bool {
        let (job, mut objects) = (self.scope.job, Vec::with_capacity(made.len()));
        objects
            .extend(chunks.iter().filter(|(place, ..)| made.contains(place)).map(|(_, _, object)| *object));
        let mut scheduler = self.gateway.watch(Topic::Domain(DomainId::Ray, job));
        let known = async {
            loop {
                let look = |state: &State| domain::came_to_be(state, job, &objects);
                if self.gateway.read(Consistency::Local, look).await? {
                    return Ok::<(), Outage>(());
                }
                scheduler.changed().await;
            }
        };
        matches!(timeout(READY_WITHIN, known).await, Ok(Ok(())))
    }

    /// Puts it into the log, however long that takes: without it the state does not know.
    async fn report(&self, order: &SealOrder, chunks: Vec<u32>, failed: bool) {
        let request = Request::SealReported {
            mutable: order.mutable,
            epoch: order.epoch,
            store: order.store.clone(),
            chunks,
            failed,
        };
        let ask = domain::Command::Ask { scope: self.scope, request_id: String::new(), request };
        let mut backoff = BACKOFF;
        loop {
            match self.gateway.submit(Command::Mars(ask.clone())).await {
                Ok(Ok(_)) => return,
                Ok(Err(fault)) => {
                    tracing::info!(job = self.scope.job.0, ?fault, "what a store has sealed was refused");
                }
                Err(outage) => {
                    tracing::info!(job = self.scope.job.0, %outage, "what a store has sealed is not in the log");
                }
            }
            backoff.rest().await;
        }
    }
}

impl Told {
    fn note(&mut self, code: Code, text: String) {
        let why = if is_definite(code) { &mut self.refusal } else { &mut self.trouble };
        _ = why.get_or_insert(text);
    }
}

/// What a store's answer says of the chunks that it was asked for.
fn judge(asked: &[Wanted], answered: Result<Vec<pb::SealedChunk>, Status>) -> Told {
    let mut told = Told::default();
    let answered = match answered {
        Ok(answered) => answered,
        Err(status) => {
            told.note(status.code(), status.message().to_owned());
            return told;
        }
    };
    for (place, key, _) in asked {
        match answered.iter().find(|sealed| sealed.key == *key) {
            Some(pb::SealedChunk { error: None, .. }) => told.made.push(*place),
            Some(pb::SealedChunk { error: Some(error), .. }) => {
                let code = i32::try_from(error.code).map_or(Code::Unknown, Code::from_i32);
                told.note(code, error.message.clone());
            }
            None => told.note(Code::Unknown, format!("the store says nothing of chunk {key}")),
        }
    }
    told
}

/// Whether the same order will be refused again. What a store has no room for, or cannot look up just now, it may make later.
fn is_definite(code: Code) -> bool {
    matches!(
        code,
        Code::Aborted
            | Code::FailedPrecondition
            | Code::NotFound
            | Code::DataLoss
            | Code::InvalidArgument
            | Code::OutOfRange
            | Code::Unimplemented
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Vec<Wanted> {
        [(4_u32, "a"), (5, "b"), (6, "c")]
            .map(|(place, key)| (place, key.to_owned(), ObjectId(u64::from(place))))
            .to_vec()
    }

    fn sealed(key: &str, code: Option<Code>) -> pb::SealedChunk {
        let error = |code: Code| pb::ChunkError {
            code: u32::try_from(i32::from(code)).expect("codes are few"),
            message: format!("{key}: {code:?}"),
        };
        pb::SealedChunk { key: key.to_owned(), error: code.map(error) }
    }

    #[test]
    fn what_is_made_counts_whatever_the_others_are_and_a_refusal_is_not_a_trouble() {
        let answered = vec![
            sealed("c", None),
            sealed("b", Some(Code::Aborted)),
            sealed("a", Some(Code::Unavailable)),
            sealed("of another order", None),
        ];
        let told = judge(&asked(), Ok(answered));
        assert_eq!(told.made, [6]);
        assert_eq!(told.refusal.as_deref(), Some("b: Aborted"));
        assert_eq!(told.trouble.as_deref(), Some("a: Unavailable"));
        assert_eq!(
            judge(&asked(), Ok(asked().iter().map(|(_, key, _)| sealed(key, None)).collect())),
            Told { made: vec![4, 5, 6], ..Told::default() }
        );
    }

    #[test]
    fn a_store_that_says_nothing_of_a_chunk_or_a_code_that_nobody_knows_is_asked_again() {
        let told = judge(&asked(), Ok(vec![sealed("a", None), sealed("b", None)]));
        assert_eq!(told.made, [4, 5]);
        assert_eq!(told.trouble.as_deref(), Some("the store says nothing of chunk c"));
        let error = pb::ChunkError { code: u32::MAX, message: "new".to_owned() };
        let strange = pb::SealedChunk { key: "a".to_owned(), error: Some(error) };
        let told = judge(&asked(), Ok(vec![strange]));
        assert_eq!((told.refusal, told.trouble.as_deref()), (None, Some("new")));
    }

    #[test]
    fn a_call_is_refused_by_what_will_be_so_again_and_troubled_by_the_rest() {
        let of = |code| judge(&asked(), Err(Status::new(code, "why")));
        for code in [Code::Aborted, Code::FailedPrecondition, Code::NotFound, Code::Unimplemented] {
            assert_eq!(of(code), Told { refusal: Some("why".to_owned()), ..Told::default() });
        }
        for code in
            [Code::Unavailable, Code::PermissionDenied, Code::ResourceExhausted, Code::DeadlineExceeded]
        {
            assert_eq!(of(code), Told { trouble: Some("why".to_owned()), ..Told::default() });
        }
    }
}
