//! What a simulated object store holds. It is in the memory of its process, and gone with it.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tripod_proto::tripod::v1::RayRun;

use super::calls::Gone;
use super::value::Value;

/// What the cluster is told of an object.
#[derive(Debug, Clone, Copy)]
pub(super) enum Report {
    /// It became ready, made by that attempt if one made it here.
    Ready { object: u64, run: Option<RayRun> },
    /// It cannot come here, and those who wait for it were told so.
    Refused { object: u64 },
}

/// The object cannot come to this store. Who asks for it later is brought it anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused;

/// How long after the cluster has heard that an object does not come those who ask are still told: who asked the cluster
/// before that is not brought it.
pub(super) const REFUSED_FOR: Duration = Duration::from_secs(2);

pub(super) struct Shelf {
    pub(super) store: u64,
    held: Mutex<ShelfContents>,
    bell: watch::Sender<()>,
    reports: mpsc::UnboundedSender<Report>,
}

#[derive(Default)]
struct ShelfContents {
    values: BTreeMap<u64, Value>,
    aliases: BTreeMap<u64, u64>,
    /// What cannot come here, and until when that is told. `None`: the cluster has not heard of it.
    refused: BTreeMap<u64, Option<Instant>>,
    dead: bool,
}

impl ShelfContents {
    fn is_refused(&self, object: u64) -> bool {
        self.refused.get(&object).is_some_and(|until| until.is_none_or(|until| Instant::now() < until))
    }
}

impl Shelf {
    /// Of a store; and where it tells what became ready.
    pub(super) fn new(store: u64) -> (Self, mpsc::UnboundedReceiver<Report>) {
        let (reports, told) = mpsc::unbounded_channel();
        (Self { store, held: Mutex::default(), bell: watch::Sender::new(()), reports }, told)
    }

    /// Writes an object. The first value counts.
    pub(super) fn put(&self, object: u64, value: Value, run: Option<RayRun>) -> Result<(), Gone> {
        let mut held = self.held.lock();
        if held.dead {
            return Err(Gone);
        }
        held.values.entry(object).or_insert(value);
        held.refused.remove(&object);
        drop(held);
        // The store's process may be at its end.
        let _ = self.reports.send(Report::Ready { object, run });
        self.bell.send_replace(());
        Ok(())
    }

    pub(super) fn has(&self, object: u64) -> bool {
        self.held.lock().values.contains_key(&object)
    }

    /// What is there now.
    pub(super) fn look(&self, object: u64) -> Result<Option<Value>, Gone> {
        let held = self.held.lock();
        if held.dead {
            return Err(Gone);
        }
        let meant = held.aliases.get(&object).copied().unwrap_or(object);
        Ok(held.values.get(&meant).cloned())
    }

    /// The object, once it is there, or that it cannot come.
    pub(super) async fn get(&self, object: u64) -> Result<Result<Value, Refused>, Gone> {
        let mut bell = self.bell.subscribe();
        loop {
            if let Some(value) = self.look(object)? {
                return Ok(Ok(value));
            }
            if self.held.lock().is_refused(object) {
                return Ok(Err(Refused));
            }
            bell.changed().await.map_err(|_| Gone)?;
        }
    }

    /// The object that was to be fetched cannot come: whoever waits for it is told so, and the cluster.
    pub(super) fn refuse(&self, object: u64) {
        let mut held = self.held.lock();
        if held.dead || held.values.contains_key(&object) {
            return;
        }
        held.refused.insert(object, None);
        drop(held);
        let _ = self.reports.send(Report::Refused { object });
        self.bell.send_replace(());
    }

    /// The cluster has heard that an object does not come.
    pub(super) fn heard_of(&self, object: u64) {
        if let Some(until) = self.held.lock().refused.get_mut(&object) {
            *until = Some(Instant::now() + REFUSED_FOR);
        }
    }

    /// Another id for an object, or for one that cannot come; `false` if that is not here.
    pub(super) fn alias(&self, alias: u64, canonical: u64) -> bool {
        let mut held = self.held.lock();
        let there = held.values.contains_key(&canonical);
        let refused = !there && held.is_refused(canonical);
        if there {
            held.aliases.insert(alias, canonical);
            held.refused.remove(&alias);
        } else if refused {
            held.refused.insert(alias, Some(Instant::now() + REFUSED_FOR));
        }
        drop(held);
        self.bell.send_replace(());
        there || refused
    }

    pub(super) fn deallocate(&self, object: u64) {
        let mut held = self.held.lock();
        held.values.remove(&object);
        held.refused.remove(&object);
        held.aliases.retain(|alias, canonical| *alias != object && *canonical != object);
    }

    /// All ids under which something is here.
    pub(super) fn ids(&self) -> Vec<u64> {
        let held = self.held.lock();
        held.values.keys().chain(held.aliases.keys()).copied().collect()
    }

    /// Its process has ended.
    pub(super) fn die(&self) {
        *self.held.lock() = ShelfContents { dead: true, ..ShelfContents::default() };
        self.bell.send_replace(());
    }
}
