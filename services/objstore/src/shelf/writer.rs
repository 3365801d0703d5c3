//! Objects that are being written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Location, Report, ReserveError, Shelf};
use crate::ids::ObjectId;
use crate::made::{Made, Teller};
use crate::memory;
use crate::table::{Life, Refusal};
use crate::value::{Charge, Value};

/// How long memory may seem to be mapped for writing. The system says so too while it holds some of the pages itself, for
/// example because it moves them; that takes some hundred milliseconds at the worst.
const SEAL_PATIENCE: Duration = Duration::from_secs(2);
const SEAL_PAUSE: Duration = Duration::from_millis(5);

/// Why an object cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Reserve(#[from] ReserveError),
}

/// Why an object could not be finished.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealFailed {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{0}; next: unmap it and seal it again")]
    MappingLeft(memory::SealError),
    /// The object is given up.
    #[error("{0}; the object was given up")]
    Broken(memory::SealError),
}

/// An object that was begun. It is given up if this is dropped before it is finished.
#[derive(Debug)]
pub(super) struct Begun {
    shelf: Arc<Shelf>,
    id: ObjectId,
    life: Life,
    finished: bool,
}

impl Begun {
    /// The object is whole: wakes who waits for it, and has the scheduler told.
    pub(super) fn finish(&mut self, value: Value, made: Made) -> Result<(), Refusal> {
        let mut inner = self.shelf.inner.lock();
        inner.table.finish(self.id, self.life)?;
        self.finished = true;
        inner.given_up.forget(self.id);
        inner.items.set(self.id, Location::Memory(Arc::new(value)));
        inner.waiting.wake(self.id, None);
        if made.teller == Teller::Store {
            // Under the lock, so that reports have the order in which objects became ready. Without a receiver the
            // store registers anew and nobody is to be told.
            _ = self.shelf.reports.send(Report::Ready { object: self.id, run: made.run });
        }
        Ok(())
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !self.finished {
            self.shelf.abandon(self.id, self.life);
        }
    }
}

/// Memory for an object, to be filled.
#[derive(Debug)]
pub(crate) struct Writer {
    begun: Begun,
    size_bytes: u64,
    target: Target,
    /// Until it is the value's.
    charge: Option<Charge>,
}

#[derive(Debug)]
enum Target {
    Heap(Vec<u8>),
    Memory(File),
}

impl Shelf {
    /// An object that a process here begins.
    pub(super) fn begin(self: &Arc<Self>, id: ObjectId) -> Result<Begun, Refusal> {
        let life = self.inner.lock().table.create(id)?;
        Ok(Begun { shelf: Arc::clone(self), id, life, finished: false })
    }

    /// Shared memory for an object that a process here writes.
    ///
    /// # Errors
    /// [`WriteError`].
    pub(crate) async fn create(
        self: &Arc<Self>,
        id: ObjectId,
        size_bytes: u64,
    ) -> Result<Writer, WriteError> {
        let begun = self.begin(id)?;
        // Its size in pages, though it may end on the heap: until then it is shared memory.
        let charge = self.reserve(memory::taken_bytes(size_bytes)).await?;
        let file = memory::create(size_bytes).map_err(|error| ReserveError::System(error.to_string()))?;
        Ok(Writer { begun, size_bytes, target: Target::Memory(file), charge: Some(charge) })
    }

    /// Memory for an object that is fetched, now that its size is known.
    ///
    /// # Errors
    /// [`WriteError`].
    pub(crate) async fn fill(
        self: &Arc<Self>,
        id: ObjectId,
        life: Life,
        size_bytes: u64,
    ) -> Result<Writer, WriteError> {
        self.check_current(id, life)?;
        let charge = self.reserve(self.taken_bytes(size_bytes)).await?;
        self.inner.lock().table.fill(id, life)?;
        // The transfer gives the object up, not one of its attempts.
        let begun = Begun { shelf: Arc::clone(self), id, life, finished: true };
        let target = if size_bytes <= self.limits.inline_bytes_max {
            Target::Heap(Vec::with_capacity(usize::try_from(size_bytes).unwrap_or(0)))
        } else {
            Target::Memory(
                memory::create(size_bytes).map_err(|error| ReserveError::System(error.to_string()))?,
            )
        };
        Ok(Writer { begun, size_bytes, target, charge: Some(charge) })
    }
}

impl Writer {
    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The memory that a process writes to; `None` for an object on the heap.
    pub(crate) fn file(&self) -> Option<&File> {
        match &self.target {
            Target::Heap(_) => None,
            Target::Memory(file) => Some(file),
        }
    }

    /// Adds bytes where the last ones ended, at `offset`.
    ///
    /// # Errors
    /// What the system says, or that the object is not wanted any more.
    pub(crate) fn append(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.begun.shelf.check_current(self.begun.id, self.begun.life).map_err(io::Error::other)?;
        match &mut self.target {
            Target::Heap(buffer) => {
                debug_assert_eq!(buffer.len() as u64, offset, "chunks follow each other");
                buffer.extend_from_slice(bytes);
                Ok(())
            }
            Target::Memory(file) => file.write_all_at(bytes, offset),
        }
    }

    /// [`Self::seal`], tried again for a while as long as the memory seems to be mapped for writing.
    ///
    /// # Errors
    /// As [`Self::seal`].
    pub(crate) async fn seal_soon(&mut self, metadata_offset: u64, made: Made) -> Result<(), SealFailed> {
        let deadline = Instant::now() + SEAL_PATIENCE;
        loop {
            match self.seal(metadata_offset, made) {
                Err(SealFailed::MappingLeft(_)) if Instant::now() < deadline => sleep(SEAL_PAUSE).await,
                sealed => return sealed,
            }
        }
    }

    /// The object is written.
    ///
    /// # Errors
    /// [`SealFailed`]. After [`SealFailed::MappingLeft`] it can be tried again.
    pub(crate) fn seal(&mut self, metadata_offset: u64, made: Made) -> Result<(), SealFailed> {
        let id = self.begun.id;
        self.begun.shelf.check_current(id, self.begun.life)?;
        let reader = match &self.target {
            Target::Heap(_) => None,
            Target::Memory(file) => Some(memory::seal(file).map_err(|error| match error {
                memory::SealError::MappingLeft => SealFailed::MappingLeft(error),
                other => SealFailed::Broken(other),
            })?),
        };
        let small = self.size_bytes <= self.begun.shelf.limits.inline_bytes_max;
        let charge = self.charge.take().ok_or(Refusal::Gone(id))?;
        let value = match (&mut self.target, reader) {
            (Target::Heap(buffer), _) => {
                Value::inline(std::mem::take(buffer).into(), metadata_offset, charge)
            }
            (Target::Memory(_), Some(file)) if small => {
                let mut bytes = vec![0; usize::try_from(self.size_bytes).unwrap_or(0)];
                file.read_exact_at(&mut bytes, 0).map_err(|error| SealFailed::Broken(error.into()))?;
                drop(charge);
                let charge = self.begun.shelf.gauge.take(self.size_bytes);
                Value::inline(bytes.into(), metadata_offset, charge)
            }
            (Target::Memory(_), Some(file)) => Value::sealed(file, self.size_bytes, metadata_offset, charge),
            (Target::Memory(_), None) => return Err(Refusal::Gone(id).into()),
        };
        self.begun.finish(value, made)?;
        Ok(())
    }
}
