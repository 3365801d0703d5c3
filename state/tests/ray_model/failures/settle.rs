//! The end of a history: nothing goes wrong any more, and everybody does what he was told.

use tripod_state::ids::TimeMs;
use tripod_state::ray::ids::ObjectId;
use tripod_state::ray::view::{Availability, WorkerLife};
use tripod_state::ray::{Peer, Request};

use crate::failures::world::World;

/// Rounds in which everybody does all he can. A task needs a few for each attempt, and waits for those before it.
const ROUNDS_MOST: u32 = 600;

impl World {
    /// Lets everything happen that is due.
    pub(super) fn settle(&mut self) {
        self.expire_the_dead();
        let ray = self.machine.scheduler();
        self.processes.retain(|id, _| {
            ray.worker(*id).is_some_and(|worker| !matches!(worker.life, WorkerLife::Dead(_)))
        });
        self.stores.retain(|id, _| ray.store(*id).is_some_and(|store| store.alive));
        self.enough_workers();
        let stores: Vec<_> = self.stores.keys().copied().collect();
        for store in stores {
            self.reconcile_one(store);
        }
        let mut rounds = 0;
        loop {
            let before = self.machine.state.clone();
            self.round();
            rounds += 1;
            if rounds > ROUNDS_MOST {
                self.broken("it does not come to rest");
            }
            if before != self.machine.state {
                continue;
            }
            match self.machine.scheduler().next_due(TimeMs(self.machine.now_ms)) {
                Some(due) => self.machine.now_ms = due.0,
                _ if self.ask_stores() => {}
                _ if self.unblock() => {}
                _ => break,
            }
        }
        self.snapshot();
        self.check_rest();
    }

    /// Compares what stores hold with what is believed of them, as is done every minute. Whether that showed anything.
    fn ask_stores(&mut self) -> bool {
        if self.machine.scheduler().stores().iter().all(|store| store.in_transit == 0) {
            return false;
        }
        let before = self.machine.scheduler().clone();
        let stores: Vec<_> = self.stores.keys().copied().collect();
        for store in stores {
            self.reconcile_one(store);
        }
        *self.machine.scheduler() != before
    }

    /// Two, so that one may die in its task.
    fn enough_workers(&mut self) {
        if self.stores.is_empty() {
            self.register_store();
        }
        for _ in self.processes.values().filter(|process| !process.driver).count()..2 {
            self.new_worker();
        }
    }

    /// Workers that wait for an argument give back what they have, the task that waits too, since it did not begin:
    /// what they wait for may have to be made again, and they may be the only ones who could. Whether there were any.
    fn unblock(&mut self) -> bool {
        let blocked = self.processes.iter().filter(|(_, process)| !process.inbox.is_empty());
        let blocked: Vec<_> = blocked.map(|(id, _)| *id).collect();
        for worker in &blocked {
            self.give_back_from(*worker, 0);
            self.ask(*worker, Request::Idle { worker: *worker, previous: None, run: None });
        }
        !blocked.is_empty()
    }

    fn round(&mut self) {
        let open = self.machine.open_orders();
        self.hand_over(&open);
        self.report_done();
        let fetching: Vec<_> = self
            .stores
            .iter()
            .flat_map(|(id, store)| store.fetching.keys().map(move |object| (*id, *object)))
            .collect();
        for (store, object) in fetching {
            self.fetch_one(store, object);
        }
        let processes: Vec<_> = self.processes.keys().copied().collect();
        for process in processes {
            while self.processes.get(&process).is_some_and(|body| !body.unwritten.is_empty()) {
                self.write(process);
            }
            while self.work_of(process) {}
        }
        // Workers may die in their tasks.
        self.expire_the_dead();
        self.enough_workers();
        self.plan();
    }

    fn check_rest(&mut self) {
        let ray = self.machine.scheduler();
        let info = ray.info();
        let mut failed = Vec::new();
        if !info.queue.is_empty() {
            self.broken(&format!("{:?} stay in the queue", info.queue));
        }
        for worker in ray.workers() {
            if !worker.running.is_empty() {
                self.broken(&format!("{} does not end {:?}", worker.id, worker.running));
            }
        }
        for (place, count) in info.counts.iter().enumerate() {
            let object = ObjectId(info.base_object + place as u64);
            let gone = Some(Availability::Deallocated);
            let now = ray.availability(object);
            match (&now, count) {
                (Some(Availability::Ready), Some(_)) => {}
                (Some(Availability::Failed(failure)), Some(_)) => {
                    failed.push(format!("  {object} is Failed({:?})", failure.reason));
                }
                (None | Some(Availability::Deallocated), None) if now.is_none() || now == gone => {}
                _ => self.broken(&format!("object {object} with count {count:?} is {now:?} in the end")),
            }
        }
        self.told.append(&mut failed);
    }

    /// The drivers leave, and then there is nothing left.
    pub(super) fn leave(&mut self) {
        let drivers: Vec<_> =
            self.processes.iter().filter(|(_, process)| process.driver).map(|(id, _)| *id).collect();
        for driver in drivers {
            self.must(driver, Request::Leave { peer: Peer::Worker(driver) });
            self.processes.remove(&driver);
        }
        self.settle();
        let info = self.machine.scheduler().info();
        if let Some(place) = info.counts.iter().position(Option::is_some) {
            let object = info.base_object + place as u64;
            self.broken(&format!("object {object} is left with count {:?}", info.counts[place]));
        }
        for (id, store) in &self.stores {
            if !store.holds.is_empty() || !store.errors.is_empty() {
                self.broken(&format!("store {id} still holds {:?} and {:?}", store.holds, store.errors));
            }
        }
        let totals = self.machine.scheduler().totals();
        if (totals.orders, totals.gets, totals.objects_live) != (0, 0, 0) {
            self.broken(&format!("something is left: {totals:?}"));
        }
    }
}
