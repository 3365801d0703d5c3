//! Orders on their way to those who are to carry them out, and what stores do with theirs.

use tripod_state::ids::TimeMs;
use tripod_state::ray::ids::{ObjectId, OrderId, StoreId};
use tripod_state::ray::{Decision, FetchFailure, Order, Peer, Refusal, Request, Run, Source};

use crate::failures::world::World;

impl World {
    pub(super) fn plan(&mut self) {
        let most = 1 + self.numbers.below(4);
        let planned = self.machine.scheduler().plan(TimeMs(self.machine.now_ms), most);
        if planned.is_empty() {
            return;
        }
        self.lead(Decision::Assign(planned.clone()));
        if self.numbers.one_in(8) {
            let again = self.lead(Decision::Assign(planned));
            if again != (tripod_state::ray::Answer::Assigned { taken: 0 }) {
                self.broken("the same plan was taken twice");
            }
        }
    }

    /// Delivers some orders to one peer, in their order, and may say so or be lost before.
    pub(super) fn messages(&mut self) {
        let open = self.machine.open_orders();
        let peers: Vec<Peer> = open.iter().map(|(_, order)| order.to()).collect();
        let Some(peer) = self.numbers.pick(&peers) else { return };
        let most = 1 + self.numbers.below(5);
        let due: Vec<_> = open.into_iter().filter(|(_, order)| order.to() == peer).take(most).collect();
        self.hand_over(&due);
        if !self.numbers.one_in(5) {
            self.report_done();
        }
    }

    pub(super) fn hand_over(&mut self, orders: &[(OrderId, Order)]) {
        for (id, order) in orders {
            if self.carry_out(order) {
                self.done.insert(*id);
            }
        }
    }

    pub(super) fn report_done(&mut self) {
        let orders: Vec<_> = std::mem::take(&mut self.done).into_iter().collect();
        if !orders.is_empty() {
            self.lead(Decision::Done { orders });
        }
    }

    /// Whether somebody was there to do it. Every order may come twice.
    fn carry_out(&mut self, order: &Order) -> bool {
        let text = format!("  order {order:?}");
        let heard = match order {
            Order::Execute { worker, run } => self.processes.get_mut(worker).map(|process| {
                if process.known.insert(*run) {
                    process.inbox.push_back(*run);
                }
            }),
            // One that is told to end a run says some time what became of it.
            Order::Import { worker, .. } | Order::Cancel { worker, .. } => {
                self.processes.get(worker).map(|_| ())
            }
            Order::Die { worker } => {
                self.processes.remove(worker);
                Some(())
            }
            Order::Deliver { store, from, object } => self.stores.get_mut(store).map(|store| {
                if !store.holds.contains(object) && !store.errors.contains(object) {
                    store.fetching.insert(*object, *from);
                }
            }),
            Order::NotifyAlias { store, alias, canonical } => self.stores.get_mut(store).map(|store| {
                store.aliases.insert(*alias, *canonical);
            }),
            Order::Deallocate { store, object } => self.stores.get_mut(store).map(|store| {
                store.holds.remove(object);
                store.errors.remove(object);
                store.fetching.remove(object);
            }),
        };
        self.told.push(format!("{text}{}", if heard.is_some() { "" } else { " to nobody" }));
        heard.is_some()
    }

    pub(super) fn fetch(&mut self) {
        let all: Vec<_> = self
            .stores
            .iter()
            .flat_map(|(id, store)| store.fetching.keys().map(move |object| (*id, *object)))
            .collect();
        if let Some((store, object)) = self.numbers.pick(&all) {
            if self.numbers.one_in(6) {
                self.damage();
            }
            self.fetch_one(store, object);
        }
    }

    /// The source of what is being fetched has it no more, and does not know that yet.
    fn lose_at_source(&mut self, store: StoreId, object: ObjectId) {
        let source = self.stores.get(&store).and_then(|store| store.fetching.get(&object)).copied();
        let Some(Source::Store(source)) = source else { return };
        if let Some(body) = self.stores.get_mut(&source) {
            self.told.push(format!("  store {source} loses {object}"));
            body.holds.remove(&object);
        }
    }

    pub(super) fn fetch_one(&mut self, store: StoreId, object: ObjectId) {
        if self.numbers.one_in(10) {
            self.lose_at_source(store, object);
        }
        let Some(body) = self.stores.get_mut(&store) else { return };
        let Some(source) = body.fetching.remove(&object) else { return };
        if self.numbers.one_in(16) {
            // That is found when the store is asked what it holds.
            self.told.push(format!("  store {store} forgets to fetch {object}"));
            return;
        }
        let Some(body) = self.stores.get_mut(&store) else { return };
        let there = match source {
            Source::Coordinator => {
                body.errors.insert(object);
                self.tell_ready(store, object, None);
                return;
            }
            Source::Store(from) => self
                .stores
                .get(&from)
                .map(|from| (from.holds.contains(&object), from.errors.contains(&object))),
        };
        match there {
            Some((true, _)) => {
                self.store_ready(store, object, None);
            }
            Some((_, true)) => {
                self.stores.get_mut(&store).expect("it fetched").errors.insert(object);
                self.tell_ready(store, object, None);
            }
            _ if self.numbers.one_in(4) => {
                self.lead(Decision::DeliveryFailed { store, object });
            }
            Some(_) if !self.numbers.one_in(3) => {
                let Source::Store(source) = source else { return };
                let source = if self.numbers.one_in(6) { StoreId(77) } else { source };
                let why = FetchFailure::Absent { source: Self::store_address(source) };
                self.tell(store, object, |object, store| Request::FetchFailed { object, store, why });
            }
            _ => {
                let why = FetchFailure::Unfinished;
                self.tell(store, object, |object, store| Request::FetchFailed { object, store, why });
            }
        }
    }

    /// A value is in a store, which says so. Whether the store lives.
    pub(super) fn store_ready(&mut self, store: StoreId, object: ObjectId, run: Option<Run>) -> bool {
        let Some(body) = self.stores.get_mut(&store) else { return false };
        body.holds.insert(object);
        body.fetching.remove(&object);
        self.tell_ready(store, object, run);
        true
    }

    fn tell_ready(&mut self, store: StoreId, object: ObjectId, run: Option<Run>) {
        self.tell(store, object, |object, store| Request::Ready { object, store, run });
    }

    fn tell(&mut self, store: StoreId, object: ObjectId, report: impl FnOnce(ObjectId, StoreId) -> Request) {
        let Some(mut session) = self.stores.get(&store).map(|store| store.session.clone()) else { return };
        let said = self.call(&mut session, None, report(object, store));
        match said {
            Ok(_) | Err(Refusal::OtherAttempt { .. } | Refusal::ReadyAlias { .. }) => {}
            Err(Refusal::StoreExpired { .. }) => {
                self.stores.remove(&store);
                return;
            }
            // It came too late: nobody wants it any more, so the store need not keep it.
            Err(Refusal::ObjectDeallocated { .. }) => {
                self.stores.get_mut(&store).expect("it told").holds.remove(&object);
            }
            Err(refusal) => self.broken(&format!("a store's report was refused: {refusal:?}")),
        }
        self.stores.get_mut(&store).expect("it told").session = session;
    }
}
