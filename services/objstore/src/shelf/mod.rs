//! The objects of one store: the table of states, and the bytes that belong to it.
//!
//! An object is pinned while somebody else than the shelf holds its [`Value`]. That is told by the count of holders
//! under the lock: nobody can become a second holder without the lock, so an object with one holder may be moved.

mod get;
mod given_up;
mod item;
mod reserve;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

pub(crate) use self::get::GetError;
use self::given_up::GivenUp;
pub(crate) use self::given_up::Why;
use self::item::{Items, Location};
pub(crate) use self::reserve::ReserveError;
pub(crate) use self::writer::{SealFailed, WriteError, Writer};
use crate::ids::{ObjectId, Run};
use crate::made::Made;
use crate::spill::Directory;
use crate::table::{Delivery, Found, Life, Refusal, Table};
use crate::value::{Gauge, Value};

/// What the scheduler is told of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// It became ready here.
    Ready { object: ObjectId, run: Option<Run> },
    /// It was to be fetched, and does not come.
    FetchFailed { object: ObjectId, why: FetchFailure },
}

/// Why an object that was to be fetched does not come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FetchFailure {
    /// No source gave all of it for too long, or there was no room. It is tried on if it is ordered again.
    Unfinished,
    /// The source at this address has none that can be used.
    Absent {
        source: String,
    },
    TooLarge,
    /// No source could be reached for minutes, or there was no room: those who wait for it here were told.
    GivenUp,
}

/// What a store may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) capacity_bytes: u64,
    pub(crate) inline_bytes_max: u64,
    /// How long an object that was deallocated may be on its way again.
    pub(crate) anew: Duration,
}

/// What a store has taken, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) used_bytes: u64,
    pub(crate) capacity_bytes: u64,
    pub(crate) spilled_bytes: u64,
}

/// The objects of one store.
#[derive(Debug)]
pub(crate) struct Shelf {
    inner: Mutex<Inner>,
    limits: Limits,
    gauge: Arc<Gauge>,
    directory: Option<Arc<Directory>>,
    /// An attempt to make room has ended.
    freed: Notify,
    /// In the order in which objects became ready. There are never more than objects here, and a few for each object
    /// that does not come, so it needs no bound.
    reports: mpsc::UnboundedSender<Report>,
}

#[derive(Debug, Default)]
struct Inner {
    table: Table,
    items: Items,
    waiting: get::Waiting,
    given_up: GivenUp,
    /// Objects that are just being written to disk.
    spilling: usize,
}

impl Shelf {
    pub(crate) fn new(
        limits: Limits,
        gauge: Arc<Gauge>,
        directory: Option<Arc<Directory>>,
        reports: mpsc::UnboundedSender<Report>,
    ) -> Arc<Self> {
        let inner = Mutex::default();
        Arc::new(Self { inner, limits, gauge, directory, freed: Notify::new(), reports })
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage {
            used_bytes: self.gauge.bytes(),
            capacity_bytes: self.limits.capacity_bytes,
            spilled_bytes: self.directory.as_ref().map_or(0, |directory| directory.bytes()),
        }
    }

    /// A whole small object: begun, written and finished in one.
    ///
    /// # Errors
    /// [`WriteError`].
    pub(crate) async fn put(
        self: &Arc<Self>,
        id: ObjectId,
        bytes: Bytes,
        metadata_offset: u64,
        made: Made,
    ) -> Result<(), WriteError> {
        let mut begun = self.begin(id)?;
        let charge = self.reserve(bytes.len() as u64).await?;
        begun.finish(Value::inline(bytes, metadata_offset, charge), made)?;
        Ok(())
    }

    /// Has the scheduler told of those objects that are still here: their makers may not have.
    pub(crate) fn tell_ready(&self, made: impl IntoIterator<Item = (ObjectId, Option<Run>)>) {
        let inner = self.inner.lock();
        for (object, run) in made {
            if inner.table.find(object) == Found::Ready(object) {
                _ = self.reports.send(Report::Ready { object, run });
            }
        }
    }

    /// Ids that can be got here, aliases included, in ascending order.
    pub(crate) fn ready(&self) -> Vec<ObjectId> {
        self.inner.lock().table.ready()
    }

    /// An order to fetch an object.
    pub(crate) fn deliver(&self, id: ObjectId) -> Delivery {
        self.inner.lock().table.deliver(id)
    }

    /// Whether a writer may still go on.
    ///
    /// # Errors
    /// [`Refusal::Gone`].
    pub(crate) fn check_current(&self, id: ObjectId, life: Life) -> Result<(), Refusal> {
        if self.inner.lock().table.is_current(id, life) { Ok(()) } else { Err(Refusal::Gone(id)) }
    }

    /// The writer gave up.
    pub(crate) fn abandon(&self, id: ObjectId, life: Life) {
        self.inner.lock().table.abandon(id, life);
    }

    /// An object that was to be fetched does not come, though it is tried on.
    pub(crate) fn report_failure(&self, id: ObjectId, why: FetchFailure) {
        // Without a receiver the store registers anew and nobody is to be told.
        _ = self.reports.send(Report::FetchFailed { object: id, why });
    }

    /// The object that is being fetched is larger than the store: whoever waits for it is told so, and the scheduler.
    pub(crate) fn refuse(&self, id: ObjectId, life: Life, size_bytes: u64) {
        let mut inner = self.inner.lock();
        if inner.table.refuse(id, life, size_bytes) {
            inner.waiting.wake(id, None);
            // Under the lock, so that reports of one object have the order of what they are about.
            self.report_failure(id, FetchFailure::TooLarge);
        }
    }

    /// Another id for an object that is here.
    ///
    /// # Errors
    /// [`Refusal`].
    pub(crate) fn alias(&self, alias: ObjectId, canonical: ObjectId) -> Result<(), Refusal> {
        let mut inner = self.inner.lock();
        match inner.table.alias(alias, canonical) {
            Err(Refusal::CanonicalAbsent(_)) if inner.alias_given_up(alias, canonical) => {}
            aliased => {
                aliased?;
                inner.waiting.wake(alias, None);
            }
        }
        Ok(())
    }

    /// Nobody needs the object any more. What still reads it can go on; the memory is free after that.
    pub(crate) fn deallocate(&self, id: ObjectId) {
        let mut inner = self.inner.lock();
        inner.given_up.forget(id);
        for ended in inner.table.deallocate(id) {
            inner.items.remove(ended);
            inner.waiting.wake(ended, None);
        }
        drop(inner);
        self.freed.notify_waiters();
    }

    /// The object's bytes are damaged: it is as if it had never been here, but who asks is told.
    fn lose(&self, id: ObjectId) {
        let mut inner = self.inner.lock();
        for lost in inner.table.lose(id) {
            inner.items.remove(lost);
            inner.waiting.wake(lost, None);
        }
    }
}

#[cfg(test)]
mod tests;
