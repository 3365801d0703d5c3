//! Has object stores seal, for as long as the state has orders for them. Each order of a store is carried out by itself, so
//! that a store that does not answer delays no other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::sleep;
use tripod_gateway::{Consistency, Gateway};
use tripod_state::ids::JobId;
use tripod_state::{DomainId, Scope, State, Topic};

use super::TICK;
use super::seal_order::Teller;
use super::store::Connect;
use crate::domain::{self, MutableNo, SealOrder};

/// Orders of one job that are carried out at a time, each with one call: a call takes little here, and those that hang hold
/// places that others need.
const ORDERS_MAX: usize = 1_024;
/// Of these, of one store: it makes a few chunks at a time.
const ORDERS_OF_ONE_MAX: usize = 2;
/// Between two looks: all chunks of what is being sealed are looked at, on a fork of the state.
const PAUSE: Duration = Duration::from_millis(100);

/// Which order: there is one for each store in an epoch of a mutable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct OrderKey {
    mutable: MutableNo,
    epoch: u64,
    store: String,
}

impl OrderKey {
    fn of(order: &SealOrder) -> Self {
        Self { mutable: order.mutable, epoch: order.epoch, store: order.store.clone() }
    }
}

/// Runs until the job has no sessions any more, or the future is dropped: then all calls end.
pub(super) async fn run(gateway: &Gateway, connect: &Connect, job: JobId) {
    let scope = Scope { job, service: None };
    let teller = Teller { gateway: gateway.clone(), connect: Arc::clone(connect), scope };
    let mut sessions = gateway.watch(Topic::Domain(DomainId::Mars, job));
    let mut scheduler = gateway.watch(Topic::Domain(DomainId::Ray, job));
    let mut carried_out = CarriedOut::default();
    loop {
        let look = |state: &State| domain::has_sessions(state, job).then(|| domain::has_mutables(state, job));
        let Ok(Some(has_mutables)) = gateway.read(Consistency::Local, look).await else { return };
        carried_out.drop_ended();
        let is_seen = match wanted(gateway, job, has_mutables).await {
            Some(orders) => {
                carried_out.match_with(&teller, orders);
                true
            }
            None => false,
        };
        sleep(PAUSE).await;
        tokio::select! {
            biased;
            () = sessions.changed() => {}
            // A store that came or went has orders, or none any more.
            () = scheduler.changed() => {}
            Some(ended) = carried_out.tasks.join_next() => note(&ended),
            () = sleep(TICK), if !is_seen => {}
        }
    }
}

/// The orders that stand; `None`: this node has no time to look.
async fn wanted(gateway: &Gateway, job: JobId, has_mutables: bool) -> Option<Vec<SealOrder>> {
    if !has_mutables {
        return Some(Vec::new());
    }
    let look = gateway.read_aside(Consistency::Local, move |_, state| domain::seal_orders(state, job));
    match look.await {
        Ok(orders) => Some(orders),
        Err(outage) => {
            tracing::debug!(job = job.0, %outage, "what is to be sealed is looked at later");
            None
        }
    }
}

/// The orders that are being carried out.
#[derive(Default)]
struct CarriedOut {
    tasks: JoinSet<()>,
    running: BTreeMap<OrderKey, AbortHandle>,
}

impl CarriedOut {
    /// To be called before the state is looked at: what an order that has ended has brought is seen then.
    fn drop_ended(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            note(&ended);
        }
        self.running.retain(|_, task| !task.is_finished());
    }

    /// Ends what does not stand any more, and begins what does, as far as there is room.
    fn match_with(&mut self, teller: &Teller, orders: Vec<SealOrder>) {
        let standing: BTreeSet<OrderKey> = orders.iter().map(OrderKey::of).collect();
        self.running.retain(|key, task| {
            let stands = standing.contains(key);
            if !stands {
                task.abort();
            }
            stands
        });
        let mut busy: BTreeMap<String, usize> = BTreeMap::new();
        for key in self.running.keys() {
            *busy.entry(key.store.clone()).or_default() += 1;
        }
        for order in orders {
            if self.running.len() >= ORDERS_MAX {
                return;
            }
            let key = OrderKey::of(&order);
            let of_one = busy.entry(key.store.clone()).or_default();
            if *of_one >= ORDERS_OF_ONE_MAX || self.running.contains_key(&key) {
                continue;
            }
            *of_one += 1;
            let task = self.tasks.spawn(teller.clone().carry_out(order));
            self.running.insert(key, task);
        }
    }
}

/// One that panicked is begun anew, as its order stands.
fn note(ended: &Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "carrying out an order to seal failed");
    }
}
