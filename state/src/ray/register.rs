//! Stores, workers and functions that come.

use std::sync::Arc;

use crate::limits::ADDRESS_BYTES_MAX;
use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::answer::Answer;
use crate::ray::command::{Registration, Role};
use crate::ray::ids::{FunctionName, StoreId, WorkerId};
use crate::ray::limits::{
    FIRST_PORT, FUNCTIONS_MAX, NAME_BYTES_MAX, PEERS_MAX, PORTS, RESULTS_MAX, SLOTS_MAX, WINDOW_FIRST,
    at_most,
};
use crate::ray::peers::{Store, Worker};
use crate::ray::refusal::Refusal;
use crate::ray::resources::Offers;

impl Act<'_> {
    /// A store that comes back at the same address is another one, and the one before is gone.
    pub(crate) fn register_store(&mut self, address: String) -> Result<Answer, Refusal> {
        check_text("address", &address)?;
        let stores = self.ray.stores.len() - self.ray.index.dead_stores.len();
        at_most("stores", stores as u64 + 1, PEERS_MAX)?;
        let living = self.ray.stores.iter().filter(|(_, store)| store.is_alive());
        let before: Vec<StoreId> =
            living.filter(|(_, store)| store.address == address).map(|(id, _)| *id).collect();
        for store in before {
            self.end_store(store, "another store began at its address");
        }
        let id = self.ray.next.store;
        self.ray.next.store.0 += 1;
        self.ray.stores.insert(id, Arc::new(Store { address, since_ms: self.now, death: None }));
        Ok(Answer::Store(id))
    }

    pub(crate) fn register_worker(
        &mut self,
        wanted: Registration,
        offers: Offers,
    ) -> Result<Answer, Refusal> {
        check_text("host", &wanted.host)?;
        offers.check()?;
        if wanted.slots == 0 || wanted.slots > SLOTS_MAX {
            return Err(invalid("slots", format!("must be 1 to {SLOTS_MAX}, not {}", wanted.slots)));
        }
        at_most("workers and drivers", self.ray.index.workers_alive + 1, PEERS_MAX)?;
        let store = self
            .ray
            .store_for(&wanted.host, &wanted.store)
            .ok_or_else(|| Refusal::NoStore { host: wanted.host.clone(), address: wanted.store.clone() })?;
        let id = self.ray.next.worker;
        let port = self.ray.port_for(id, &wanted.host)?;
        let worker = Worker {
            role: wanted.role,
            host: wanted.host,
            port,
            store,
            attributed: wanted.attributed,
            extended: wanted.extended,
            slots: wanted.slots,
            window: WINDOW_FIRST,
            since_ms: self.now,
            initialised: false,
            accepting: false,
            running: Vec::new(),
            suspect_until: None,
            death: None,
        };
        let address = worker.address();
        self.ray.next.worker.0 += 1;
        self.ray.index.workers_alive += 1;
        if worker.role == Role::Worker {
            self.ray.index.locations.count(store, |tally| tally.workers += 1);
            if !offers.is_default() {
                self.ray.offers.insert(id, Arc::new(offers));
            }
        }
        self.ray.workers.insert(id, Arc::new(worker));
        let store_address = self.ray.stores[&store].address.clone();
        Ok(Answer::Worker { worker: id, store, address, store_address })
    }

    pub(crate) fn register_function(
        &mut self,
        worker: WorkerId,
        name: FunctionName,
        results: u64,
    ) -> Result<Answer, Refusal> {
        self.ray.executor(worker)?;
        check_name(&name)?;
        at_most("results of a function", results, RESULTS_MAX)?;
        if self.ray.functions.slot(&name).is_none() {
            at_most("functions", self.ray.functions.len() as u64 + 1, FUNCTIONS_MAX)?;
        }
        self.ray.functions.register(name, results, worker);
        Ok(Answer::Done)
    }
}

impl Ray {
    /// The store at an address, or without one the host's store with the fewest workers, of equal ones the one
    /// with the lowest id. Hosts are compared as a whole: upstream took the beginning of an address for a host.
    fn store_for(&self, host: &str, address: &str) -> Option<StoreId> {
        let living = self.stores.iter().filter(|(_, store)| store.is_alive());
        if !address.is_empty() {
            return living.filter(|(_, store)| store.address == address).map(|(id, _)| *id).next_back();
        }
        let host = host.trim_matches(['[', ']']);
        let of_host = living.filter(|(_, store)| store.host() == host).map(|(id, _)| *id);
        of_host.min_by_key(|store| (self.index.locations.tally(*store).workers, *store))
    }

    /// Upstream's rule, kept within the numbers that ports can have: a port that a living worker of the host has is
    /// skipped.
    fn port_for(&self, id: WorkerId, host: &str) -> Result<u16, Refusal> {
        let first = u16::try_from(id.0 % u64::from(PORTS)).unwrap_or_default();
        let taken = |port: u16| {
            let mut workers = self.workers.values();
            // Until as many have come as there are ports, none can meet.
            id.0 >= u64::from(PORTS)
                && workers.any(|worker| worker.is_alive() && worker.port == port && worker.host == host)
        };
        let ports = (0..PORTS).map(|step| FIRST_PORT + (first + step) % PORTS);
        let free = ports.into_iter().find(|port| !taken(*port));
        free.ok_or_else(|| Refusal::Full { what: "ports of a host".to_owned(), limit: u64::from(PORTS) })
    }
}

pub(crate) fn check_name(name: &FunctionName) -> Result<(), Refusal> {
    if name.0.is_empty() {
        return Err(invalid("name", "must not be empty".to_owned()));
    }
    at_most("bytes of a name", name.0.len() as u64, NAME_BYTES_MAX)
}

fn check_text(field: &str, text: &str) -> Result<(), Refusal> {
    if text.is_empty() || text.len() > ADDRESS_BYTES_MAX {
        return Err(invalid(field, format!("must have 1 to {ADDRESS_BYTES_MAX} bytes, not {}", text.len())));
    }
    Ok(())
}

pub(crate) fn invalid(field: &str, reason: String) -> Refusal {
    Refusal::Invalid { field: field.to_owned(), reason }
}
