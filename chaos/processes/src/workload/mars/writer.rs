//! One client of a mutable tensor: it writes and reads cells, as of few times, so that they meet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rand::RngExt as _;
use tokio::time::Instant;
use tonic::{Code, Status};
use tripod_checkers::history::{
    Call, Cell, Epoch, Found, Outcome, Refusal, Reply, TensorAct, TensorName, Timestamp, Value,
};
use tripod_proto::mars::v1 as pb;

use super::caller::{Caller, missing, tensor_seen};
use super::cells::{CELLS, CHUNK_CELLS, Put, Stores, batch};
use super::{AGAIN_PAUSE, Mars};

const REST_MAX_MS: u64 = 120;
/// How long one batch is sent again and again. Longer than a store takes to start, and not so long that many of one cell are
/// under way for ever.
const PATIENCE: Duration = Duration::from_secs(8);
const LIMIT: Duration = Duration::from_secs(5);
/// Timestamps are one of these, in nanoseconds.
const TIMES: std::ops::Range<i64> = 1..9;
/// Of so many writes one is for an epoch that is not current.
const OTHER_EPOCH_OF: u32 = 12;

/// A tensor that several clients use.
pub(super) struct Shared {
    pub(super) name: String,
    pub(super) tensor: TensorName,
    /// As it was told last.
    pub(super) info: Mutex<pb::MutableInfo>,
    /// Nothing is written any more.
    pub(super) over: AtomicBool,
}

/// A client, and what it knows of stores.
pub(super) struct Writer {
    pub(super) caller: Caller,
    pub(super) shared: Arc<Shared>,
    stores: Stores,
    batches: u64,
}

impl Writer {
    pub(super) fn new(caller: Caller, shared: Arc<Shared>) -> Self {
        Self { caller, shared, stores: Stores::default(), batches: 0 }
    }

    /// Until the tensor is sealed.
    pub(super) async fn run(mut self) {
        while !self.shared.over.load(Ordering::Relaxed) {
            match self.caller.random.random_range(0..10) {
                0..5 => {
                    let epoch = self.any_epoch();
                    self.write(epoch).await;
                }
                5..9 => {
                    let chunk = self.caller.random.random_range(0..CELLS / CHUNK_CELLS);
                    let at = self.caller.random.random_bool(0.6).then(|| self.time());
                    self.read(chunk, at).await;
                }
                _ => drop(self.look().await),
            }
            self.caller.rest(REST_MAX_MS).await;
        }
    }

    pub(super) fn time(&mut self) -> Timestamp {
        Timestamp(self.caller.random.random_range(TIMES))
    }

    pub(super) fn epoch(&self) -> u64 {
        self.shared.info.lock().epoch
    }

    /// Mostly the current one.
    fn any_epoch(&mut self) -> u64 {
        let epoch = self.epoch();
        if !self.caller.random.random_ratio(1, OTHER_EPOCH_OF) {
            return epoch;
        }
        if self.caller.random.random_bool(0.5) { epoch + 1 } else { epoch.saturating_sub(1) }
    }

    /// The key of a chunk, and the store that is asked about it.
    fn place(&self, chunk: u64) -> Option<(String, String)> {
        let info = self.shared.info.lock();
        let chunk = info.chunks.get(usize::try_from(chunk).ok()?)?;
        Some((chunk.key.clone(), chunk.workers.first()?.clone()))
    }

    fn act(&self, act: TensorAct) -> Call {
        Call::Tensor { tensor: self.shared.tensor.clone(), act }
    }

    /// How it is now.
    pub(super) async fn look(&mut self) -> Outcome {
        let request = pb::GetMutableTileableRequest {
            session_id: self.caller.session.clone(),
            name: self.shared.name.clone(),
            chunk_key: String::new(),
        };
        let call = self.act(TensorAct::Look);
        let seen = |answer: &pb::MutableResponse| {
            let info = answer.info.as_ref().ok_or("an answer that says nothing of the tensor")?;
            tensor_seen(info).map(Reply::Tensor)
        };
        let send = |mut mars: Mars| async move { mars.get_mutable_tileable(request).await };
        let (outcome, told) = self.caller.record(call, LIMIT, send, seen, missing).await;
        if let Some(info) = told.and_then(|told| told.info) {
            *self.shared.info.lock() = info;
        }
        outcome
    }

    /// Writes one cell, as one batch that is sent until it is answered.
    pub(super) async fn write(&mut self, epoch: u64) {
        let cell = self.caller.random.random_range(0..CELLS);
        let (at, value) = (self.time(), self.caller.setting.fresh());
        let Some((key, store)) = self.place(cell / CHUNK_CELLS) else { return };
        self.batches += 1;
        let head = pb::MutableBatch {
            session_id: self.caller.session.clone(),
            chunk_key: key,
            epoch,
            client_id: format!("client-{}", self.caller.id),
            batch_no: self.batches,
            timestamp_ns: at.0,
            ..Default::default()
        };
        let batch = batch(head, cell % CHUNK_CELLS, value);
        let write = TensorAct::Write { cell: Cell(cell), at, value: Value(value), epoch: Epoch(epoch) };
        let pending = self.caller.setting.invoke(self.caller.id, self.act(write));
        let deadline = Instant::now() + PATIENCE;
        let mut unsure = false;
        let outcome = loop {
            match self.stores.put(&store, batch.clone()).await {
                Put::Done => break Outcome::Ok(Reply::Done),
                // What was sent before may be written.
                Put::Stale | Put::Refused(_) if unsure => {
                    break Outcome::Unknown("refused after an attempt without an answer".to_owned());
                }
                Put::Stale => break Outcome::Ok(Reply::Refused(Refusal::Stale)),
                Put::Refused(why) => break Outcome::Fail(why),
                Put::Unknown(why) if Instant::now() >= deadline => break Outcome::Unknown(why),
                Put::Unknown(_) => {
                    unsure = true;
                    pending.again();
                    tokio::time::sleep(AGAIN_PAUSE).await;
                }
            }
        };
        let stale = outcome == Outcome::Ok(Reply::Refused(Refusal::Stale));
        self.caller.setting.complete(pending, outcome);
        if stale {
            self.look().await;
        }
    }

    /// Reads all cells of a chunk, each of which is an operation of its own.
    pub(super) async fn read(&mut self, chunk: u64, at: Option<Timestamp>) {
        let Some((key, store)) = self.place(chunk) else { return };
        let epoch = self.epoch();
        let first = chunk * CHUNK_CELLS;
        let pending: Vec<_> = (first..first + CHUNK_CELLS)
            .map(|cell| {
                let act = self.act(TensorAct::Read { cell: Cell(cell), at, epoch: Epoch(epoch) });
                self.caller.setting.invoke(self.caller.id, act)
            })
            .collect();
        let request = pb::GetMutableChunksDataRequest {
            chunks: Some(pb::GetChunksDataRequest {
                session_id: self.caller.session.clone(),
                chunk_keys: vec![key],
                ..Default::default()
            }),
            epoch,
            timestamp_ns: at.map(|at| at.0),
            seal: false,
        };
        let cells = self.stores.get(&store, request).await;
        for (place, pending) in pending.into_iter().enumerate() {
            self.caller.setting.complete(pending, outcome_of(&cells, place));
        }
        if cells.is_err_and(|status| status.code() == Code::Aborted) {
            self.look().await;
        }
    }

    /// Writes down what a cell was sealed as.
    pub(super) fn note_sealed(&self, chunk: u64, cells: &Result<Vec<u64>, Status>) {
        let first = chunk * CHUNK_CELLS;
        let setting = &self.caller.setting;
        for (place, cell) in (first..first + CHUNK_CELLS).enumerate() {
            let act = self.act(TensorAct::ReadSealed { cell: Cell(cell) });
            let pending = setting.invoke(self.caller.id, act);
            setting.complete(pending, outcome_of(cells, place));
        }
    }
}

/// What a read says of one of the cells. Nobody writes 0, which is what is there at first.
fn outcome_of(cells: &Result<Vec<u64>, Status>, place: usize) -> Outcome {
    match cells {
        Ok(cells) => match cells.get(place) {
            Some(0) => Outcome::Ok(Reply::Value(None)),
            Some(value) => {
                Outcome::Ok(Reply::Value(Some(Found { value: Value(*value), version: None, index: None })))
            }
            None => Outcome::Unknown("the chunk has not so many cells".to_owned()),
        },
        Err(status) if status.code() == Code::Aborted => Outcome::Ok(Reply::Refused(Refusal::Stale)),
        // A read changes nothing.
        Err(status) => Outcome::Fail(format!("{:?}: {}", status.code(), status.message())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_wrote_is_nothing() {
        let cells = Ok(vec![0, 7]);
        assert_eq!(outcome_of(&cells, 0), Outcome::Ok(Reply::Value(None)));
        let seven = Found { value: Value(7), version: None, index: None };
        assert_eq!(outcome_of(&cells, 1), Outcome::Ok(Reply::Value(Some(seven))));
        assert!(outcome_of(&cells, 2).reply().is_none());
        let stale = Err(Status::aborted("another epoch"));
        assert_eq!(outcome_of(&stale, 0), Outcome::Ok(Reply::Refused(Refusal::Stale)));
        assert!(!outcome_of(&Err(Status::unavailable("away")), 0).may_have_effect());
    }
}
