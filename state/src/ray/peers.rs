//! Workers, drivers and stores as the state keeps them.

use serde::{Deserialize, Serialize};

use crate::ids::TimeMs;
use crate::memory::{Weigh, of_list, of_text};
use crate::ray::command::{Role, Run};
use crate::ray::ids::StoreId;

/// A worker or a driver.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Worker {
    pub(crate) role: Role,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) store: StoreId,
    pub(crate) attributed: bool,
    pub(crate) extended: bool,
    /// How many tasks it may have at a time, at most.
    pub(crate) slots: u32,
    /// How many it may have now: more with every report, and one after it gave some back. So a worker whose tasks
    /// take long has few that wait for it, and one whose tasks take no time is never out of work.
    pub(crate) window: u32,
    pub(crate) since_ms: TimeMs,
    /// It asked for a task once, and was told of all exports then.
    pub(crate) initialised: bool,
    /// It takes tasks; not while it waits within one and gave the others back.
    pub(crate) accepting: bool,
    /// What it was given, in order.
    pub(crate) running: Vec<Run>,
    /// A task could not be handed to it: it is given none until then.
    pub(crate) suspect_until: Option<TimeMs>,
    /// Why it is dead.
    pub(crate) death: Option<String>,
}

impl Worker {
    pub(crate) fn is_alive(&self) -> bool {
        self.death.is_none()
    }

    /// Whether it lives and is no driver.
    pub(crate) fn executes(&self) -> bool {
        self.is_alive() && self.role == Role::Worker
    }

    /// How many tasks it may have now within its slots.
    pub(crate) fn own_capacity(&self) -> usize {
        self.window.min(self.slots) as usize
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host.trim_matches(['[', ']']), self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// An object store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Store {
    pub(crate) address: String,
    pub(crate) since_ms: TimeMs,
    /// Why it is dead.
    pub(crate) death: Option<String>,
}

impl Store {
    pub(crate) fn is_alive(&self) -> bool {
        self.death.is_none()
    }

    /// The host part of the address.
    pub(crate) fn host(&self) -> &str {
        let host = self.address.rsplit_once(':').map_or(self.address.as_str(), |(host, _)| host);
        host.trim_matches(['[', ']'])
    }
}

/// What a store has to do with, in numbers. Derived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) objects: u64,
    pub(crate) incoming: u64,
    pub(crate) outgoing: u64,
    /// Living workers, without drivers.
    pub(crate) workers: u64,
}

impl Weigh for Worker {
    fn outside(&self) -> u64 {
        let texts = of_text(self.host.len()).saturating_add(of_death(self.death.as_deref()));
        texts.saturating_add(of_list::<Run>(self.running.len()))
    }
}

impl Weigh for Store {
    fn outside(&self) -> u64 {
        of_text(self.address.len()).saturating_add(of_death(self.death.as_deref()))
    }
}

fn of_death(why: Option<&str>) -> u64 {
    why.map_or(0, |why| of_text(why.len()))
}
