//! Getting objects, and waiting for them.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Location, ReserveError, Shelf, Why};
use crate::ids::ObjectId;
use crate::table::Found;
use crate::value::Value;

/// Why an object cannot be got.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GetError {
    #[error("object {0} was deallocated: nothing refers to it any more")]
    Deallocated(ObjectId),
    #[error("object {0} was damaged on disk; next: ask the scheduler for it again")]
    Lost(ObjectId),
    #[error(transparent)]
    Reserve(#[from] ReserveError),
    /// For good: nothing that is dropped makes room enough.
    #[error("object {id} cannot come to this store: {error}")]
    TooLarge { id: ObjectId, error: ReserveError },
    /// It was tried for long.
    #[error("object {id} cannot come to this store: {why}")]
    GivenUp { id: ObjectId, why: Why },
    #[error("the store registers anew and has no objects any more")]
    Ended,
}

/// Who waits, by the id that was asked for.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    waiters: HashMap<ObjectId, HashMap<u64, oneshot::Sender<Option<ReserveError>>>>,
    places: u64,
}

impl Waiting {
    /// Has everybody look again who waits for that id, or tells them why it would be in vain.
    pub(super) fn wake(&mut self, id: ObjectId, error: Option<&ReserveError>) {
        for (_, waiter) in self.waiters.remove(&id).unwrap_or_default() {
            // Who went away needs no answer.
            _ = waiter.send(error.cloned());
        }
    }

    fn join(&mut self, id: ObjectId) -> (u64, oneshot::Receiver<Option<ReserveError>>) {
        let (sender, receiver) = oneshot::channel();
        self.places += 1;
        self.waiters.entry(id).or_default().insert(self.places, sender);
        (self.places, receiver)
    }

    fn leave(&mut self, id: ObjectId, number: u64) {
        if let Some(waiters) = self.waiters.get_mut(&id) {
            waiters.remove(&number);
            if waiters.is_empty() {
                self.waiters.remove(&id);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.waiters.values().map(HashMap::len).sum()
    }
}

/// Takes a waiter's place away when it stops waiting, however it does.
struct Wait<'a> {
    shelf: &'a Shelf,
    id: ObjectId,
    number: u64,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.shelf.inner.lock().waiting.leave(self.id, self.number);
    }
}

/// What a look finds.
enum Look {
    Decided(Result<Arc<Value>, GetError>),
    Wait(u64, oneshot::Receiver<Option<ReserveError>>),
}

impl Shelf {
    /// Whether the object can be got here, at most after reading it from disk.
    pub(crate) fn is_ready(&self, id: ObjectId) -> bool {
        matches!(self.inner.lock().table.find(id), Found::Ready(_))
    }

    /// Whether the object is being written or fetched.
    pub(crate) fn is_coming(&self, id: ObjectId) -> bool {
        self.inner.lock().table.is_coming(id)
    }

    /// The object, if it can be had without waiting, or can never be had.
    pub(crate) fn get_now(&self, id: ObjectId) -> Option<Result<Arc<Value>, GetError>> {
        let mut inner = self.inner.lock();
        match inner.table.find(id) {
            Found::Deallocated => Some(Err(GetError::Deallocated(id))),
            Found::Lost => Some(Err(GetError::Lost(id))),
            Found::TooLarge(size_bytes) => Some(Err(self.too_large(id, size_bytes))),
            Found::NotYet => inner.given_up.why(id).map(|why| Err(GetError::GivenUp { id, why })),
            Found::Ready(canonical) => match inner.items.touch(canonical) {
                Some(Location::Memory(value) | Location::Spilling(value)) => Some(Ok(Arc::clone(value))),
                _ => None,
            },
        }
    }

    /// Waits until the object is here. It is pinned while the answer is held.
    ///
    /// # Errors
    /// [`GetError`].
    pub(crate) async fn get(self: &Arc<Self>, id: ObjectId) -> Result<Arc<Value>, GetError> {
        self.get_as(id, false).await
    }

    /// Like [`Shelf::get`], but an object that was deallocated here may come again for a while: the scheduler has
    /// it made once more for somebody, and who needs it can be here before the order to fetch it.
    ///
    /// # Errors
    /// [`GetError`]; [`GetError::Deallocated`] only after that while.
    pub(crate) async fn get_or_anew(self: &Arc<Self>, id: ObjectId) -> Result<Arc<Value>, GetError> {
        match self.get(id).await {
            Err(GetError::Deallocated(_)) => {}
            got => return got,
        }
        match tokio::time::timeout(self.limits.anew, self.get_as(id, true)).await {
            Ok(got) => got,
            Err(_) => Err(GetError::Deallocated(id)),
        }
    }

    async fn get_as(self: &Arc<Self>, id: ObjectId, may_come_anew: bool) -> Result<Arc<Value>, GetError> {
        loop {
            let (number, receiver) = match self.look(id, may_come_anew) {
                Look::Decided(decided) => return decided,
                Look::Wait(number, receiver) => (number, receiver),
            };
            let _wait = Wait { shelf: self, id, number };
            match receiver.await {
                Ok(None) => {}
                Ok(Some(error)) => return Err(error.into()),
                Err(_) => return Err(GetError::Ended),
            }
        }
    }

    fn too_large(&self, id: ObjectId, bytes: u64) -> GetError {
        let capacity_bytes = self.limits.capacity_bytes;
        GetError::TooLarge { id, error: ReserveError::LargerThanStore { bytes, capacity_bytes } }
    }

    fn look(self: &Arc<Self>, id: ObjectId, may_come_anew: bool) -> Look {
        match self.get_now(id) {
            Some(Err(GetError::Deallocated(_))) if may_come_anew => {}
            Some(decided) => return Look::Decided(decided),
            None => {}
        }
        let mut inner = self.inner.lock();
        // It may have been decided between the two looks.
        match inner.table.find(id) {
            Found::Deallocated if may_come_anew => {}
            Found::Deallocated => return Look::Decided(Err(GetError::Deallocated(id))),
            Found::Lost => return Look::Decided(Err(GetError::Lost(id))),
            Found::TooLarge(size_bytes) => return Look::Decided(Err(self.too_large(id, size_bytes))),
            Found::NotYet => {
                if let Some(why) = inner.given_up.why(id) {
                    return Look::Decided(Err(GetError::GivenUp { id, why }));
                }
            }
            Found::Ready(canonical) => match inner.items.location(canonical) {
                Some(Location::Memory(value) | Location::Spilling(value)) => {
                    return Look::Decided(Ok(Arc::clone(value)));
                }
                Some(Location::Disk(spilled)) => {
                    let spilled = Arc::clone(spilled);
                    inner.items.set(canonical, Location::Restoring(Arc::clone(&spilled)));
                    // A task of its own: whoever asked first may go away, and others wait too.
                    tokio::spawn(Arc::clone(self).restore(canonical, spilled));
                }
                Some(Location::Restoring(_)) | None => {}
            },
        }
        let (number, receiver) = inner.waiting.join(id);
        Look::Wait(number, receiver)
    }
}
