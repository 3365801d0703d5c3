//! What a simulated object store holds. It is in the memory of its process, and gone with it.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tripod_proto::tripod::v1::RayRun;

use super::calls::Gone;
use super::value::Value;

/// An object that became ready.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report {
    pub(super) object: u64,
    /// Which attempt made it, if one did here.
    pub(super) run: Option<RayRun>,
}

pub(super) struct Shelf {
    pub(super) store: u64,
    held: Mutex<Held>,
    bell: watch::Sender<()>,
    reports: mpsc::UnboundedSender<Report>,
}

#[derive(Default)]
struct Held {
    values: BTreeMap<u64, Value>,
    aliases: BTreeMap<u64, u64>,
    dead: bool,
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
        drop(held);
        // The store's process may be at its end.
        let _ = self.reports.send(Report { object, run });
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

    /// The object, once it is there.
    pub(super) async fn get(&self, object: u64) -> Result<Value, Gone> {
        let mut bell = self.bell.subscribe();
        loop {
            if let Some(value) = self.look(object)? {
                return Ok(value);
            }
            bell.changed().await.map_err(|_| Gone)?;
        }
    }

    /// Another id for an object; `false` if that is not here.
    pub(super) fn alias(&self, alias: u64, canonical: u64) -> bool {
        let mut held = self.held.lock();
        let there = held.values.contains_key(&canonical);
        if there {
            held.aliases.insert(alias, canonical);
        }
        drop(held);
        self.bell.send_replace(());
        there
    }

    pub(super) fn deallocate(&self, object: u64) {
        let mut held = self.held.lock();
        held.values.remove(&object);
        held.aliases.retain(|alias, canonical| *alias != object && *canonical != object);
    }

    /// All ids under which something is here.
    pub(super) fn ids(&self) -> Vec<u64> {
        let held = self.held.lock();
        held.values.keys().chain(held.aliases.keys()).copied().collect()
    }

    /// Its process has ended.
    pub(super) fn die(&self) {
        *self.held.lock() = Held { dead: true, ..Held::default() };
        self.bell.send_replace(());
    }
}
