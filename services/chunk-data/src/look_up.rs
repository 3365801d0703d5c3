//! What the nodes say of chunks, remembered for a while.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tonic::Status;
use tripod_proto::mars::v1::{ChunkMeta, MutableInfo, MutableState};

use crate::limits::{LOOK_UP_AGE_MAX, LOOK_UP_PATIENCE, LOOK_UPS_MAX};
use crate::mutable::{ChunkId, MutableError};
use crate::store::Store;

/// Keys of one question.
const ASKED_AT_ONCE: usize = 1000;

/// Where a chunk is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) object: u64,
    pub(crate) workers: Vec<String>,
}

/// What the nodes say of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    Known(Known),
    /// It is not made yet, or gone.
    NoObject,
    Unknown,
}

/// Answers of the nodes.
#[derive(Debug)]
pub(crate) struct LookUps {
    store: Arc<dyn Store>,
    chunks: Remembered<Known>,
    mutables: Remembered<Arc<MutableInfo>>,
    /// How far each tileable was when it was furthest, by the number that the log gave it. What is remembered of one of its
    /// chunks may be older than what was told of another one.
    furthest: Mutex<HashMap<u64, Stage>>,
}

/// How far a mutable tileable is. Within an epoch it is open first, and never again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stage {
    epoch: u64,
    is_over: bool,
}

impl Stage {
    fn of(info: &MutableInfo) -> Self {
        Self { epoch: info.epoch, is_over: info.state() != MutableState::Open }
    }
}

#[derive(Debug)]
struct Remembered<V> {
    answers: Mutex<HashMap<ChunkId, (Instant, V)>>,
}

impl<V: Clone> Remembered<V> {
    fn new() -> Self {
        Self { answers: Mutex::default() }
    }

    fn get(&self, id: &ChunkId) -> Option<V> {
        let answers = self.answers.lock();
        let (at, answer) = answers.get(id)?;
        (at.elapsed() < LOOK_UP_AGE_MAX).then(|| answer.clone())
    }

    fn put(&self, id: ChunkId, answer: V) {
        let mut answers = self.answers.lock();
        if answers.len() >= LOOK_UPS_MAX {
            answers.clear();
        }
        answers.insert(id, (Instant::now(), answer));
    }

    fn forget(&self, id: &ChunkId) {
        self.answers.lock().remove(id);
    }
}

impl LookUps {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, chunks: Remembered::new(), mutables: Remembered::new(), furthest: Mutex::default() }
    }

    /// What is known of each key, in their order.
    ///
    /// # Errors
    /// What the scheduler says: `NOT_FOUND` if it has no such session. `UNAVAILABLE` if no node answers.
    pub(crate) async fn chunks(&self, session: &str, keys: &[String]) -> Result<Vec<Told>, Status> {
        let id = |key: &String| ChunkId { session: session.to_owned(), key: key.clone() };
        let mut told: HashMap<&String, Told> = HashMap::new();
        for key in keys {
            if let Some(known) = self.chunks.get(&id(key)) {
                told.insert(key, Told::Known(known));
            }
        }
        let mut asked: Vec<&String> = keys.iter().filter(|key| !told.contains_key(key)).collect();
        asked.sort_unstable();
        asked.dedup();
        for some in asked.chunks(ASKED_AT_ONCE) {
            let question = some.iter().copied().cloned().collect();
            let metas = answered(self.store.chunk_metas(session, question)).await?;
            if metas.len() != some.len() {
                let text = format!("a node told of {} chunks, and was asked for {}", metas.len(), some.len());
                return Err(Status::unavailable(text));
            }
            for (key, meta) in some.iter().zip(metas) {
                let answer = of_meta(meta);
                if let Told::Known(known) = &answer {
                    self.chunks.put(id(key), known.clone());
                }
                told.insert(key, answer);
            }
        }
        Ok(keys.iter().map(|key| told.get(key).cloned().unwrap_or(Told::Unknown)).collect())
    }

    /// What was told of a chunk turned out to be so no more.
    pub(crate) fn forget(&self, session: &str, key: &str) {
        let id = ChunkId { session: session.to_owned(), key: key.to_owned() };
        self.chunks.forget(&id);
        self.mutables.forget(&id);
    }

    /// The tileable of a mutable chunk, as it was a moment ago.
    ///
    /// # Errors
    /// As [`Self::chunks`].
    pub(crate) async fn mutable(&self, id: &ChunkId) -> Result<Arc<MutableInfo>, Status> {
        match self.mutables.get(id) {
            Some(info) if self.check_furthest(id, &info).is_ok() => Ok(info),
            _ => self.mutable_now(id).await,
        }
    }

    /// The same as it is now.
    ///
    /// # Errors
    /// As [`Self::chunks`].
    pub(crate) async fn mutable_now(&self, id: &ChunkId) -> Result<Arc<MutableInfo>, Status> {
        self.mutables.forget(id);
        let info = Arc::new(answered(self.store.mutable_of(&id.session, &id.key)).await?);
        self.note(&info);
        self.mutables.put(id.clone(), Arc::clone(&info));
        Ok(info)
    }

    /// Whether the store has not heard of a later epoch than the one that was told, nor that this one is over, in whatever it
    /// asked meanwhile about any chunk of the tileable.
    ///
    /// # Errors
    /// [`MutableError::Epoch`], [`MutableError::Sealed`].
    pub(crate) fn check_furthest(&self, id: &ChunkId, told: &MutableInfo) -> Result<(), MutableError> {
        let stage = Stage::of(told);
        let furthest = self.furthest.lock().get(&told.id).copied().unwrap_or(stage);
        let key = || id.key.clone();
        if furthest <= stage {
            return Ok(());
        }
        if furthest.epoch > stage.epoch {
            return Err(MutableError::Epoch { key: key(), asked: stage.epoch, is: furthest.epoch });
        }
        Err(MutableError::Sealed { key: key(), epoch: stage.epoch })
    }

    fn note(&self, info: &MutableInfo) {
        let stage = Stage::of(info);
        let mut furthest = self.furthest.lock();
        if furthest.len() >= LOOK_UPS_MAX {
            // What is remembered goes with it, so that nothing old is believed.
            furthest.clear();
            self.mutables.answers.lock().clear();
        }
        let known = furthest.entry(info.id).or_insert(stage);
        *known = stage.max(*known);
    }
}

/// Nodes are asked for ever; here the caller waits.
async fn answered<T>(asked: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    match timeout(LOOK_UP_PATIENCE, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(Status::unavailable("no node says where the chunk is; next: try again")),
    }
}

fn of_meta(meta: ChunkMeta) -> Told {
    match (meta.found, meta.object_id) {
        (false, _) => Told::Unknown,
        (true, None) => Told::NoObject,
        (true, Some(object)) => {
            let workers = meta.workers.into_iter().map(|place| place.worker_id).collect();
            Told::Known(Known { object, workers })
        }
    }
}
