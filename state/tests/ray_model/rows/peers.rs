//! The processes outside: workers, drivers and stores that do what the scenario says with what they were told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash as _, Hasher as _};

use tripod_state::ray::ids::{ClientSession, ExportId, FunctionName, ObjectId, StoreId, WorkerId};
use tripod_state::ray::{Order, Run, Source};

/// Who makes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Client {
    Process(WorkerId),
    Store(StoreId),
}

/// What a client knows of its own calls. A client of 2016 has none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    pub(super) id: ClientSession,
    pub(super) last: u64,
}

/// A worker or a driver that lives.
#[derive(Clone)]
pub(super) struct Process {
    pub(super) store: StoreId,
    pub(super) session: Option<Session>,
    /// Tasks that it was told to execute, in order.
    pub(super) inbox: VecDeque<Run>,
    /// All that it was ever told: an order may come twice.
    pub(super) known: BTreeSet<Run>,
    /// The exports in the order in which they came first.
    pub(super) imports: Vec<ExportId>,
    /// It stops before it carries out what comes next.
    pub(super) told_to_die: bool,
}

/// What is under an id in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredObject {
    Value(u64),
    /// Why there is no value.
    Error,
}

/// A store that lives.
#[derive(Clone)]
pub(super) struct Shelf {
    pub(super) session: Option<Session>,
    pub(super) held: BTreeMap<ObjectId, StoredObject>,
    pub(super) aliases: BTreeMap<ObjectId, ObjectId>,
    pub(super) fetching: BTreeMap<ObjectId, Source>,
}

impl Process {
    pub(super) fn new(store: StoreId, session: Option<Session>) -> Self {
        let (inbox, known, imports) = (VecDeque::new(), BTreeSet::new(), Vec::new());
        Self { store, session, inbox, known, imports, told_to_die: false }
    }

    fn take(&mut self, order: &Order) {
        match order {
            Order::Execute { run, .. } if self.known.insert(*run) => self.inbox.push_back(*run),
            // The last import of a name wins, so what comes again in the same order changes nothing.
            Order::Import { export, .. } if !self.imports.contains(export) => self.imports.push(*export),
            Order::Die { .. } => self.told_to_die = true,
            _ => {}
        }
    }
}

impl Shelf {
    pub(super) fn new(session: Option<Session>) -> Self {
        Self { session, held: BTreeMap::new(), aliases: BTreeMap::new(), fetching: BTreeMap::new() }
    }

    /// What a process at this store finds under an id.
    pub(super) fn read(&self, id: ObjectId) -> Option<StoredObject> {
        let meant = self.aliases.get(&id).unwrap_or(&id);
        self.held.get(meant).or_else(|| self.held.get(&id)).copied()
    }

    fn take(&mut self, order: &Order) {
        match order {
            Order::Deliver { from, object, .. } if !self.held.contains_key(object) => {
                self.fetching.insert(*object, *from);
            }
            Order::NotifyAlias { alias, canonical, .. } => {
                self.aliases.insert(*alias, *canonical);
            }
            Order::Deallocate { object, .. } => {
                self.held.remove(object);
                self.fetching.remove(object);
            }
            _ => {}
        }
    }
}

/// Everybody.
#[derive(Clone, Default)]
pub(super) struct Peers {
    pub(super) processes: BTreeMap<WorkerId, Process>,
    pub(super) stores: BTreeMap<StoreId, Shelf>,
}

impl Peers {
    /// Whether somebody was there to be told. Every order may come twice.
    pub(super) fn take(&mut self, order: &Order) -> bool {
        match order {
            Order::Execute { worker, .. }
            | Order::Import { worker, .. }
            | Order::Die { worker }
            | Order::Cancel { worker, .. } => {
                self.processes.get_mut(worker).map(|process| process.take(order)).is_some()
            }
            Order::Deliver { store, .. }
            | Order::NotifyAlias { store, .. }
            | Order::Deallocate { store, .. } => {
                self.stores.get_mut(store).map(|shelf| shelf.take(order)).is_some()
            }
        }
    }

    pub(super) fn session(&mut self, client: Client) -> Option<&mut Session> {
        match client {
            Client::Process(id) => self.processes.get_mut(&id)?.session.as_mut(),
            Client::Store(id) => self.stores.get_mut(&id)?.session.as_mut(),
        }
    }
}

/// What a function makes of its arguments: the same whenever it runs, and another one for each result.
pub(super) fn computed(function: &FunctionName, arguments: &[u64], place: usize) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    (function, arguments, place).hash(&mut hasher);
    hasher.finish()
}
