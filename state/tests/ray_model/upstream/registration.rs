//! Stores, workers, functions and exports.

use tripod_state::ray::ids::{ExportId, FunctionName, StoreId, WorkerId};
use tripod_state::ray::{Answer, Registration, Role};

use crate::upstream::{Exported, Function, Sent, Store, Upstream, Verdict, Worker};

impl Upstream {
    /// What is wrong with naming a worker.
    pub(super) fn faults_of_worker(&self, id: WorkerId) -> Vec<&'static str> {
        match self.workers.get(id.0 as usize) {
            None => vec!["WorkerUnknown"],
            Some(worker) if !worker.alive => vec!["WorkerExpired"],
            Some(_) => Vec::new(),
        }
    }

    pub(super) fn register_store(&mut self, address: &str) -> Verdict {
        let id = StoreId(self.stores.len() as u64);
        self.stores.push(Store { address: address.to_owned(), in_transit: Vec::new() });
        Ok(Answer::Store(id))
    }

    pub(super) fn register_worker(&mut self, asked: &Registration) -> Verdict {
        let Some(store) = self.store_for(asked) else { return Err(vec!["NoStore"]) };
        let id = WorkerId(self.workers.len() as u64);
        let address = format!("{}:{}", asked.host, 40_000 + id.0 % 20_000);
        let store_address = self.stores[store.0 as usize].address.clone();
        self.workers.push(Worker {
            driver: asked.role == Role::Driver,
            attributed: asked.attributed,
            address: address.clone(),
            store,
            alive: true,
            initialised: false,
            current: None,
        });
        self.schedule();
        Ok(Answer::Worker { worker: id, store, address, store_address })
    }

    /// The one that was named, or that of the host with the fewest living workers.
    fn store_for(&self, asked: &Registration) -> Option<StoreId> {
        let host = |address: &str| address.rsplit_once(':').map(|(host, _)| host.to_owned());
        let mut best: Option<(usize, StoreId)> = None;
        for (number, store) in self.stores.iter().enumerate() {
            let id = StoreId(number as u64);
            if !asked.store.is_empty() {
                if store.address == asked.store {
                    return Some(id);
                }
                continue;
            }
            let load = self.workers.iter().filter(|worker| worker.alive && worker.store == id).count();
            let better = best.is_none_or(|(least, _)| load < least);
            if host(&store.address).as_deref() == Some(asked.host.as_str()) && better {
                best = Some((load, id));
            }
        }
        best.map(|(_, id)| id)
    }

    pub(super) fn register_function(
        &mut self,
        worker: WorkerId,
        name: &FunctionName,
        results: u64,
    ) -> Verdict {
        let faults = self.faults_of_worker(worker);
        if !faults.is_empty() {
            return Err(faults);
        }
        match self.functions.iter_mut().find(|function| function.name == *name) {
            None => {
                self.functions.push(Function { name: name.clone(), results, workers: vec![worker] });
                self.functions.sort_by(|one, other| one.name.cmp(&other.name));
            }
            Some(function) => {
                function.results = results;
                if !function.workers.contains(&worker) {
                    function.workers.push(worker);
                    function.workers.sort();
                }
            }
        }
        self.schedule();
        Ok(Answer::Done)
    }

    pub(super) fn export(&mut self, variable: bool) -> Verdict {
        let id = ExportId(self.exports.len() as u64);
        self.exports.push(if variable { Exported::Variable(id) } else { Exported::Function(id) });
        for (number, worker) in self.workers.iter().enumerate() {
            // One that is not initialised gets all of them later.
            if worker.alive && !worker.driver && worker.initialised {
                self.sent.push(Sent::Import(WorkerId(number as u64), id));
            }
        }
        Ok(Answer::Done)
    }

    /// Sends all exports to a worker that asks for its first task: functions, then variables.
    pub(super) fn initialise(&mut self, worker: WorkerId) {
        let functions = self.exports.iter().filter_map(|exported| match exported {
            Exported::Function(id) => Some(*id),
            Exported::Variable(_) => None,
        });
        let variables = self.exports.iter().filter_map(|exported| match exported {
            Exported::Variable(id) => Some(*id),
            Exported::Function(_) => None,
        });
        let imports: Vec<_> = functions.chain(variables).map(|export| Sent::Import(worker, export)).collect();
        self.sent.extend(imports);
        self.workers[worker.0 as usize].initialised = true;
    }

    pub(super) fn kill_workers(&mut self) -> Verdict {
        let busy = self.workers.iter().any(|worker| worker.alive && worker.current.is_some());
        if busy || !self.queue.is_empty() {
            return Ok(Answer::Killed(false));
        }
        for (number, worker) in self.workers.iter_mut().enumerate() {
            if worker.alive && !worker.driver {
                worker.alive = false;
                self.sent.push(Sent::Die(WorkerId(number as u64)));
            }
        }
        self.idle.clear();
        self.functions.clear();
        Ok(Answer::Killed(true))
    }
}
