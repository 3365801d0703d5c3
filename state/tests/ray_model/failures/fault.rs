//! What goes wrong.

use tripod_state::ids::{Term, TimeMs};
use tripod_state::ray::ids::{StoreId, WorkerId};
use tripod_state::ray::view::WorkerLife;
use tripod_state::ray::{Answer, Decision, Order, Peer, Refusal, Request, Source};

use crate::failures::world::{Sent, World};

impl World {
    pub(super) fn fault(&mut self) {
        match self.numbers.below(12) {
            0 | 1 => self.die(false),
            2 => self.die(true),
            3 => self.store_dies(),
            4 | 5 => self.expire_the_dead(),
            6 => self.expire_somebody_alive(),
            7 => self.undelivered(),
            8 => self.give_back(),
            9 => self.damage(),
            10 => self.reconcile(),
            _ => {
                self.lead(Decision::Rearm { term: Term(self.machine.index) });
            }
        }
    }

    fn die(&mut self, driver: bool) {
        let Some(process) = self.pick_process(driver) else { return };
        if self.numbers.one_in(3) {
            self.ask(process, Request::Leave { peer: Peer::Worker(process) });
        }
        self.told.push(format!("  {process} dies"));
        self.processes.remove(&process);
    }

    fn store_dies(&mut self) {
        let ids: Vec<_> = self.stores.keys().copied().collect();
        let Some(store) = self.numbers.pick(&ids) else { return };
        self.told.push(format!("  store {store} dies"));
        self.stores.remove(&store);
        self.processes.retain(|_, process| process.store != store);
    }

    /// The peers that the scheduler believes to be alive and that are not.
    fn silent(&self) -> Vec<Peer> {
        let ray = self.machine.scheduler();
        let worker = |id: WorkerId| !self.processes.contains_key(&id);
        let store = |id: StoreId| !self.stores.contains_key(&id);
        ray.watched()
            .into_iter()
            .map(|watched| watched.peer)
            .filter(|peer| match peer {
                Peer::Worker(id) => worker(*id),
                Peer::Store(id) => store(*id),
            })
            .collect()
    }

    pub(super) fn expire_the_dead(&mut self) {
        let peers = self.silent();
        if !peers.is_empty() {
            self.lead(Decision::Expire { peers });
            self.bury();
        }
    }

    /// Processes at a store that expired are as dead as it, and notice it.
    pub(super) fn bury(&mut self) {
        let ray = self.machine.scheduler();
        let dead =
            |id: &WorkerId| ray.worker(*id).is_none_or(|worker| matches!(worker.life, WorkerLife::Dead(_)));
        let buried: Vec<_> = self.processes.keys().copied().filter(dead).collect();
        let gone = |id: &StoreId| ray.store(*id).is_none_or(|store| !store.alive);
        let stores: Vec<_> = self.stores.keys().copied().filter(gone).collect();
        for id in buried {
            if self.numbers.one_in(2) {
                self.processes.remove(&id);
            }
        }
        for id in stores {
            if self.numbers.one_in(2) {
                self.stores.remove(&id);
            }
        }
    }

    /// A mistake of whoever leads: the peer lives, goes on, and is told when it calls.
    fn expire_somebody_alive(&mut self) {
        let workers: Vec<_> = self.processes.keys().copied().collect();
        if let Some(worker) = self.numbers.pick(&workers) {
            self.lead(Decision::Expire { peers: vec![Peer::Worker(worker)] });
        }
    }

    /// A task that never reached its worker.
    fn undelivered(&mut self) {
        let mut runs = Vec::new();
        for (_, order) in self.machine.open_orders() {
            if let Order::Execute { worker, run } = order
                && self.processes.get(&worker).is_none_or(|process| !process.known.contains(&run))
            {
                runs.push(run);
            }
        }
        let Some(run) = self.numbers.pick(&runs) else { return };
        *self.budgets.entry(run.operation).or_default() += 1;
        self.lead(Decision::Undelivered { runs: vec![run] });
    }

    /// A worker that waits within its first task gives the others back.
    fn give_back(&mut self) {
        let open = self.machine.open_orders();
        self.hand_over(&open);
        let several = self.processes.iter().filter(|(_, process)| process.inbox.len() > 1);
        let several: Vec<_> = several.map(|(id, _)| *id).collect();
        let Some(worker) = self.numbers.pick(&several) else { return };
        self.give_back_from(worker, 1);
    }

    /// Gives back all tasks of a worker but the first so many.
    pub(super) fn give_back_from(&mut self, worker: WorkerId, kept: usize) {
        let process = self.processes.get_mut(&worker).expect("it was picked");
        let runs: Vec<_> = process.inbox.drain(kept..).collect();
        for run in &runs {
            *self.budgets.entry(run.operation).or_default() += 1;
        }
        self.ask(worker, Request::GiveBack { worker, runs });
    }

    /// A store loses a value, and finds out, or is found out by whoever fetches it there.
    pub(super) fn damage(&mut self) {
        let mut all = Vec::new();
        for (id, store) in &self.stores {
            all.extend(store.holds.iter().map(|object| (*id, *object)));
        }
        // What is just being fetched from there is lost more often than that.
        let fetched = self.stores.values().flat_map(|store| &store.fetching);
        let fetched: Vec<_> = fetched
            .filter_map(|(object, source)| match source {
                Source::Store(from) => Some((*from, *object)),
                Source::Coordinator => None,
            })
            .filter(|lost| all.contains(lost))
            .collect();
        if !fetched.is_empty() {
            all = fetched;
        }
        let Some((store, object)) = self.numbers.pick(&all) else { return };
        self.told.push(format!("  store {store} loses {object}"));
        self.stores.get_mut(&store).expect("it was picked").holds.remove(&object);
        if self.numbers.one_in(2) {
            self.reconcile_one(store);
        }
    }

    fn reconcile(&mut self) {
        let ids: Vec<_> = self.stores.keys().copied().collect();
        if let Some(store) = self.numbers.pick(&ids) {
            self.reconcile_one(store);
        }
    }

    pub(super) fn reconcile_one(&mut self, store: StoreId) {
        let Some(body) = self.stores.get(&store) else { return };
        let holds = body.holds.union(&body.errors).copied().collect();
        // What became ready in the same millisecond may have become so afterwards.
        self.machine.now_ms += 5;
        let asked_ms = TimeMs(self.machine.now_ms);
        self.lead(Decision::Reconcile { store, holds, asked_ms });
    }

    /// Sends an earlier call again: it is answered as it was, and changes nothing.
    pub(super) fn repeat(&mut self) {
        let processes = self.processes.values().map(|process| &process.session);
        let sessions: Vec<_> = processes.chain(self.stores.values().map(|store| &store.session)).collect();
        let sent: Vec<&Sent> = sessions.into_iter().flat_map(|session| &session.sent).collect();
        let Some(sent) = self.numbers.pick(&sent).cloned() else { return };
        if matches!(sent.said, Err(Refusal::FunctionUnknown { .. })) {
            return;
        }
        let expected = sent.said.clone().map(|answer| Answer::Replayed(Box::new(answer)));
        self.told.push(format!("  {:?} is asked again", sent.request));
        let shown = self.machine.shown();
        let mut states = Vec::new();
        for _ in 0..2 {
            let (said, effects) =
                self.machine.ask_stamped(Some(sent.stamp), sent.process, sent.request.clone());
            if said != expected {
                self.broken(&format!("{:?} again is answered with {said:?}, not {expected:?}", sent.request));
            }
            if !effects.is_empty() || self.machine.shown() != shown {
                self.broken(&format!("{:?} again changed something: {effects:?}", sent.request));
            }
            states.push(self.machine.state.clone());
        }
        // The first one told the session that it is still in use; the second one had nothing to tell.
        if states[0] != states[1] {
            self.broken(&format!("{:?} again and again changed something", sent.request));
        }
    }

    pub(super) fn snapshot(&mut self) {
        match self.machine.through_a_snapshot() {
            Ok(machine) => self.machine = machine,
            Err(fault) => self.broken(&fault),
        }
    }
}
