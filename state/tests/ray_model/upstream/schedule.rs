//! What the original did at the end of most calls: gets, then tasks, then alias notifications.

use tripod_state::ray::ids::{ObjectId, OperationId, StoreId, WorkerId};
use tripod_state::ray::{Algorithm, Argument};

use crate::upstream::calls::mentioned;
use crate::upstream::{Owner, Sent, Upstream};

impl Upstream {
    pub(super) fn schedule(&mut self) {
        self.perform_gets();
        self.schedule_tasks();
        self.perform_notices();
    }

    fn perform_gets(&mut self) {
        let mut at = 0;
        while at < self.gets.len() {
            let (worker, object) = self.gets[at];
            if self.locations(object).is_empty() {
                at += 1;
                continue;
            }
            let store = self.worker(worker).store;
            let canonical = self.canonical(object).expect("what has a location has a canonical id");
            self.deliver_if_necessary(canonical, store);
            self.notices.push((store, object, canonical));
            self.gets.swap_remove(at);
        }
    }

    fn deliver_if_necessary(&mut self, canonical: ObjectId, to: StoreId) {
        let present = self.object(canonical).locations.contains(&to);
        let in_transit = &mut self.stores[to.0 as usize].in_transit;
        if present || in_transit.contains(&canonical) {
            return;
        }
        in_transit.push(canonical);
        self.hold(canonical, Owner::Delivery(to), 1);
        self.sent.push(Sent::Deliver(to, canonical));
    }

    fn schedule_tasks(&mut self) {
        let mut at = 0;
        while at < self.idle.len() {
            let worker = self.idle[at];
            let Some(place) = self.choice(worker) else {
                at += 1;
                continue;
            };
            let operation = self.queue.remove(place).expect("it was found there");
            self.assign(operation, worker);
            self.idle.swap_remove(at);
        }
    }

    /// Where in the queue the worker's next task is.
    fn choice(&self, worker: WorkerId) -> Option<usize> {
        let mut best: Option<(usize, usize)> = None;
        for (place, operation) in self.queue.iter().enumerate() {
            if !self.could_run(*operation, worker) {
                continue;
            }
            let shipped = match self.algorithm {
                Algorithm::Naive => 0,
                Algorithm::LocalityAware => self.shipped(*operation, self.worker(worker).store),
            };
            if best.is_none_or(|(least, _)| shipped < least) {
                best = Some((shipped, place));
            }
        }
        best.map(|(_, place)| place)
    }

    pub(crate) fn could_run(&self, operation: OperationId, worker: WorkerId) -> bool {
        let (name, arguments, _) = self.task(operation);
        let can = self.function(name).is_some_and(|function| function.workers.contains(&worker));
        can && by_reference(arguments).all(|id| !self.locations(id).is_empty())
    }

    /// How many arguments are not in the store, each as often as it is given.
    fn shipped(&self, operation: OperationId, store: StoreId) -> usize {
        let arguments = self.task(operation).1;
        by_reference(arguments).filter(|id| !self.locations(*id).contains(&store)).count()
    }

    fn assign(&mut self, operation: OperationId, worker: WorkerId) {
        let store = self.worker(worker).store;
        let (_, arguments, results) = self.task(operation);
        let (needed, results): (Vec<_>, Vec<_>) = (by_reference(arguments).collect(), results.to_vec());
        let mentioned = mentioned(arguments);
        for object in needed {
            let canonical = self.canonical(object).expect("it can run");
            self.notices.push((store, object, canonical));
            self.deliver_if_necessary(canonical, store);
        }
        let client = self.client(Some(worker));
        for object in mentioned.into_iter().chain(results) {
            self.give(object, Owner::Task(operation), client);
        }
        self.workers[worker.0 as usize].current = Some(operation);
        self.sent.push(Sent::Execute(worker, operation));
    }

    fn perform_notices(&mut self) {
        let mut at = 0;
        while at < self.notices.len() {
            let (store, alias, canonical) = self.notices[at];
            if alias != canonical {
                if !self.object(canonical).locations.contains(&store) {
                    at += 1;
                    continue;
                }
                self.sent.push(Sent::NotifyAlias(store, alias, canonical));
            }
            self.notices.swap_remove(at);
        }
    }
}

fn by_reference(arguments: &[Argument]) -> impl Iterator<Item = ObjectId> {
    arguments.iter().filter_map(|argument| match argument {
        Argument::Object(id) => Some(*id),
        Argument::Value { .. } => None,
    })
}
