//! Records that nobody needs any more, as the scheduler says of their tileables.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::engine::State;
use super::{ChunkId, Engine, MutableError};

/// A chunk that is kept here.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) id: ChunkId,
    /// The number that the log gave its tileable.
    pub(crate) tileable: u64,
    /// It was put as a whole.
    pub(crate) is_put: bool,
}

impl Engine {
    /// All chunks and the numbers of their tileables. Records that are damaged are left out: who looks after the store has them.
    pub(crate) fn held(&self) -> Vec<Held> {
        let slots: Vec<_> =
            self.chunks.lock().iter().map(|(id, slot)| (id.clone(), Arc::clone(slot))).collect();
        let mut held = Vec::with_capacity(slots.len());
        for (id, slot) in slots {
            if let State::Open(records) = &*slot.state.lock() {
                held.push(Held { id, tileable: records.cells.definition.tileable, is_put: false });
            }
        }
        let puts = self.puts.lock();
        held.extend(puts.values().map(|put| Held {
            id: put.id().clone(),
            tileable: put.tileable(),
            is_put: true,
        }));
        drop(puts);
        held.extend(self.held_spoilt());
        held
    }

    /// Whether the chunks are those of that cluster; the first one that is named is.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn belongs_to(&self, cluster: &str) -> io::Result<bool> {
        self.directory.belongs_to(cluster)
    }

    /// Removes chunks of these tileables with their files; how many. One whose file cannot be removed stays.
    pub(crate) fn sweep(&self, gone: &[Held]) -> usize {
        let mut removed = 0;
        for Held { id, tileable, is_put } in gone {
            if self.closed.load(Ordering::SeqCst) {
                break;
            }
            let swept =
                if *is_put { self.forget_put(id, *tileable) } else { self.forget_records(id, *tileable) };
            match swept {
                Ok(was_there) => removed += usize::from(was_there),
                Err(error) => tracing::warn!(%error, "records that nobody needs stay for now"),
            }
        }
        // After a crash those that are there again are asked for again.
        if removed > 0
            && let Err(error) = self.directory.sync()
        {
            tracing::warn!(%error, "the directory of mutable chunks cannot be made durable");
        }
        removed
    }

    fn forget_records(&self, id: &ChunkId, tileable: u64) -> Result<bool, MutableError> {
        let Some(slot) = self.find(id) else { return Ok(false) };
        let mut state = slot.state.lock();
        match &*state {
            State::Open(records) if records.cells.definition.tileable == tileable => {}
            _ => return Ok(false),
        }
        self.remove_file(id, &mut state)?;
        drop(state);
        let mut chunks = self.chunks.lock();
        if chunks.get(id).is_some_and(|known| Arc::ptr_eq(known, &slot)) {
            chunks.remove(id);
        }
        Ok(true)
    }
}
