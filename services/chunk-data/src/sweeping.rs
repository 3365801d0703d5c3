//! Records of mutable chunks that nobody needs any more: the scheduler is asked how far their tileables are, again and again.
//! Nothing is missed by a store that was away: what it has it asks for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use tonic::Status;
use tripod_proto::mars::v1::MutableState;

use crate::limits::{LOOK_UP_PATIENCE, STATES_ASKED_MAX, SWEEP_EVERY, SWEEP_SETTLED, SWEEP_SOON};
use crate::mutable::Held;
use crate::service::Inner;
use crate::status::panicked;

/// Removes what is not needed. Of a tileable that was sealed the objects are the chunks; one that was deleted has none.
#[derive(Debug)]
pub struct Sweeper {
    inner: Arc<Inner>,
    /// Since when chunks are known not to be needed.
    unneeded: HashMap<Held, Instant>,
    /// It was told that the directory is another cluster's.
    is_strange: bool,
}

impl Sweeper {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner, unneeded: HashMap::new(), is_strange: false }
    }

    /// Goes on for as long as it is polled.
    pub async fn run(mut self) {
        loop {
            if let Err(status) = self.round(Instant::now()).await {
                tracing::debug!(%status, "which records are needed is asked later");
            }
            tokio::select! {
                () = sleep(SWEEP_EVERY) => {}
                () = self.inner.sealed.notified() => sleep(SWEEP_SOON).await,
            }
        }
    }

    /// Asks once, and removes what has not been needed for long enough at `now`; how many chunks.
    ///
    /// # Errors
    /// That nobody says what is needed: then nothing is removed.
    pub async fn round(&mut self, now: Instant) -> Result<usize, Status> {
        let Ok(engine) = self.inner.engine().map(Arc::clone) else { return Ok(0) };
        let looking = Arc::clone(&engine);
        let held = spawn_blocking(move || looking.held()).await.map_err(|error| panicked(&error))?;
        if held.is_empty() {
            self.unneeded.clear();
            return Ok(0);
        }
        let over = self.over(&held).await?;
        let mut known = std::mem::take(&mut self.unneeded);
        let mut gone = Vec::new();
        for chunk in held.into_iter().filter(|chunk| over.contains(&chunk.tileable)) {
            let since = known.remove(&chunk).unwrap_or(now);
            // Who puts a chunk asks the scheduler at that moment, so nobody is mistaken about those.
            if chunk.is_put || now.saturating_duration_since(since) >= SWEEP_SETTLED {
                gone.push(chunk.clone());
            }
            self.unneeded.insert(chunk, since);
        }
        if gone.is_empty() {
            return Ok(0);
        }
        for chunk in &gone {
            self.inner.look_ups.forget(&chunk.id.session, &chunk.id.key);
        }
        let removed = spawn_blocking(move || engine.sweep(&gone)).await.map_err(|error| panicked(&error))?;
        tracing::debug!(removed, "records of mutable chunks that were sealed or deleted are gone");
        Ok(removed)
    }

    /// The tileables that are sealed or deleted. A cluster that does not know them is none that can say so, and a node that
    /// has applied less than what made them is none either.
    async fn over(&mut self, held: &[Held]) -> Result<BTreeSet<u64>, Status> {
        let tileables: BTreeSet<u64> = held.iter().map(|chunk| chunk.tileable).collect();
        let tileables: Vec<u64> = tileables.into_iter().collect();
        let mut states = BTreeMap::new();
        for some in tileables.chunks(STATES_ASKED_MAX) {
            let asked = timeout(LOOK_UP_PATIENCE, self.inner.store.mutable_states(some.to_vec())).await;
            let told = asked.map_err(|_| Status::unavailable("no node says which records are needed"))??;
            if told.states.len() != some.len() {
                let text = format!(
                    "a node told of {} tileables, and was asked for {}",
                    told.states.len(),
                    some.len()
                );
                return Err(Status::unavailable(text));
            }
            if !self.is_ours(told.cluster).await? {
                return Ok(BTreeSet::new());
            }
            let known = some.iter().zip(told.states).filter(|(tileable, _)| **tileable <= told.applied_index);
            states.extend(known.map(|(tileable, state)| (*tileable, state)));
        }
        let over = |state: &MutableState| matches!(state, MutableState::Sealed | MutableState::Deleted);
        Ok(states.into_iter().filter(|(_, state)| over(state)).map(|(tileable, _)| tileable).collect())
    }

    async fn is_ours(&mut self, cluster: String) -> Result<bool, Status> {
        if cluster.is_empty() {
            return Ok(false);
        }
        let engine = Arc::clone(self.inner.engine()?);
        let asked = cluster.clone();
        let is_ours =
            spawn_blocking(move || engine.belongs_to(&asked)).await.map_err(|error| panicked(&error))?;
        let is_ours = is_ours.map_err(|error| {
            Status::unavailable(format!("whose the mutable chunks are cannot be read: {error}"))
        })?;
        if !is_ours && !std::mem::replace(&mut self.is_strange, true) {
            tracing::warn!(
                cluster,
                "the mutable chunks in the directory are another cluster's or job's; they stay, and nobody reads them"
            );
        }
        Ok(is_ours)
    }
}
