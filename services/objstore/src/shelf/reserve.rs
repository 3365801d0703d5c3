//! Room in memory, made by writing cold objects to disk.

use std::sync::Arc;

use super::{Location, Shelf};
use crate::ids::ObjectId;
use crate::memory;
use crate::spill::{DiskReservation, ReadError, Spilled};
use crate::value::{Charge, Value};

/// Why there is no memory for an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReserveError {
    #[error(
        "an object of {bytes} bytes is larger than the store, which holds {capacity_bytes}; next: give it more"
    )]
    LargerThanStore { bytes: u64, capacity_bytes: u64 },
    #[error(
        "no room for {bytes} bytes: {used_bytes} of {capacity_bytes} are in use, and {why}; next: drop references, or \
         give the store more"
    )]
    Full { bytes: u64, used_bytes: u64, capacity_bytes: u64, why: String },
    #[error(
        "the system gives no memory for an object: {0}; next: look at `ulimit -n` and at the free memory"
    )]
    System(String),
}

/// What an attempt to take memory comes to.
enum Step {
    Taken(Charge),
    Spill(ObjectId, Arc<Value>, DiskReservation),
    /// Others are making room just now.
    Wait,
    Full(&'static str),
}

impl Shelf {
    /// Takes memory, after writing as many cold objects to disk as need be.
    ///
    /// # Errors
    /// [`ReserveError`].
    pub(crate) async fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Charge, ReserveError> {
        let capacity_bytes = self.limits.capacity_bytes;
        if bytes > capacity_bytes {
            return Err(ReserveError::LargerThanStore { bytes, capacity_bytes });
        }
        loop {
            // Before looking, so that nothing that happens after looking is missed.
            let mut changed = std::pin::pin!(self.freed.notified());
            changed.as_mut().enable();
            let why = match self.step(bytes) {
                Step::Taken(charge) => return Ok(charge),
                Step::Wait => {
                    changed.await;
                    continue;
                }
                Step::Spill(id, value, reservation) => {
                    // A task of its own: whoever waits may go away, and the object must not stay half moved.
                    let spilled = tokio::spawn(Arc::clone(self).spill(id, value, reservation)).await;
                    match spilled.map_err(|error| error.to_string()).flatten() {
                        Ok(()) => continue,
                        Err(why) => why,
                    }
                }
                Step::Full(why) => why.to_owned(),
            };
            return Err(ReserveError::Full { bytes, used_bytes: self.gauge.bytes(), capacity_bytes, why });
        }
    }

    fn step(&self, bytes: u64) -> Step {
        let mut inner = self.inner.lock();
        if self.gauge.bytes().saturating_add(bytes) <= self.limits.capacity_bytes {
            return Step::Taken(self.gauge.take(bytes));
        }
        let Some(directory) = &self.directory else { return Step::Full("there is no directory to spill to") };
        let coldest = inner.items.coldest();
        let refused = match coldest {
            Some((id, value)) => match directory.reserve(value.size_bytes) {
                Some(reservation) => {
                    inner.items.set(id, Location::Spilling(Arc::clone(&value)));
                    inner.spilling += 1;
                    return Step::Spill(id, value, reservation);
                }
                None => "the directory for spilled objects is full",
            },
            None => "all of it is being read or written",
        };
        if inner.spilling > 0 { Step::Wait } else { Step::Full(refused) }
    }

    async fn spill(
        self: Arc<Self>,
        id: ObjectId,
        value: Arc<Value>,
        reservation: DiskReservation,
    ) -> Result<(), String> {
        let directory = self.directory.clone().ok_or("there is no directory to spill to")?;
        let source = Arc::clone(&value);
        let write = move || directory.write(&source.bytes()?.bytes, source.metadata_offset, reservation);
        let written = tokio::task::spawn_blocking(write).await.map_err(std::io::Error::other).flatten();
        let mut inner = self.inner.lock();
        inner.spilling -= 1;
        let current = match inner.items.location(id) {
            Some(Location::Spilling(kept)) => Arc::ptr_eq(kept, &value),
            _ => false,
        };
        // The shelf and this task; whoever else holds it has begun to read it meanwhile.
        let pinned = Arc::strong_count(&value) > 2;
        let outcome = match written {
            Ok(spilled) if current && !pinned => {
                inner.items.set(id, Location::Disk(Arc::new(spilled)));
                Ok(())
            }
            other => {
                if current {
                    inner.items.set(id, Location::Memory(Arc::clone(&value)));
                }
                other.map(drop).map_err(|error| format!("an object could not be written to disk: {error}"))
            }
        };
        drop(value);
        drop(inner);
        self.freed.notify_waiters();
        outcome
    }

    /// Reads an object back from disk, and wakes who waits for it.
    pub(super) async fn restore(self: Arc<Self>, id: ObjectId, spilled: Arc<Spilled>) {
        let size_bytes = spilled.size_bytes;
        let charge = match self.reserve(self.taken_bytes(size_bytes)).await {
            Ok(charge) => charge,
            Err(error) => return self.restored(id, &spilled, Err(error)),
        };
        let inline = size_bytes <= self.limits.inline_bytes_max;
        let source = Arc::clone(&spilled);
        let read = tokio::task::spawn_blocking(move || read_back(&source, inline, charge)).await;
        match read {
            Ok(Ok(value)) => self.restored(id, &spilled, Ok(value)),
            Ok(Err(RestoreError::Memory(error))) => {
                self.restored(id, &spilled, Err(ReserveError::System(error)));
            }
            Ok(Err(RestoreError::Read(error))) => self.damaged(id, &spilled, &error.to_string()),
            Err(error) => self.damaged(id, &spilled, &error.to_string()),
        }
    }

    fn restored(&self, id: ObjectId, spilled: &Arc<Spilled>, outcome: Result<Value, ReserveError>) {
        let mut inner = self.inner.lock();
        if !inner.is_restoring(id, spilled) {
            return;
        }
        let (location, told) = match outcome {
            Ok(value) => (Location::Memory(Arc::new(value)), None),
            Err(error) => (Location::Disk(Arc::clone(spilled)), Some(error)),
        };
        inner.items.set(id, location);
        for name in inner.table.names_of(id) {
            inner.waiting.wake(name, told.as_ref());
        }
    }

    fn damaged(&self, id: ObjectId, spilled: &Arc<Spilled>, error: &str) {
        if self.inner.lock().is_restoring(id, spilled) {
            tracing::warn!(object = %id, error, "a spilled object is damaged and was dropped");
            self.lose(id);
        }
    }

    /// What an object of that size takes, in bytes.
    pub(super) fn taken_bytes(&self, size_bytes: u64) -> u64 {
        if size_bytes <= self.limits.inline_bytes_max { size_bytes } else { memory::taken_bytes(size_bytes) }
    }
}

impl super::Inner {
    fn is_restoring(&self, id: ObjectId, spilled: &Arc<Spilled>) -> bool {
        matches!(self.items.location(id), Some(Location::Restoring(kept)) if Arc::ptr_eq(kept, spilled))
    }
}

enum RestoreError {
    Memory(String),
    Read(ReadError),
}

fn read_back(spilled: &Spilled, inline: bool, charge: Charge) -> Result<Value, RestoreError> {
    use std::os::unix::fs::FileExt as _;
    let memory_error = |error: &dyn std::fmt::Display| RestoreError::Memory(error.to_string());
    if inline {
        let mut bytes = Vec::with_capacity(usize::try_from(spilled.size_bytes).unwrap_or(0));
        let push = |_, part: &[u8]| {
            bytes.extend_from_slice(part);
            Ok(())
        };
        spilled.read(push).map_err(RestoreError::Read)?;
        return Ok(Value::inline(bytes.into(), spilled.metadata_offset, charge));
    }
    let file = memory::create(spilled.size_bytes).map_err(|error| memory_error(&error))?;
    let write = |offset, part: &[u8]| file.write_all_at(part, offset);
    spilled.read(write).map_err(RestoreError::Read)?;
    let file = memory::seal(&file).map_err(|error| memory_error(&error))?;
    Ok(Value::sealed(file, spilled.size_bytes, spilled.metadata_offset, charge))
}
