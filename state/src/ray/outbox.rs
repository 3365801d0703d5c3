//! What workers and stores are still to be told.

use imbl::{OrdMap, OrdSet};

use crate::memory::{of_map, of_set};
use crate::ray::command::Peer;
use crate::ray::ids::{ExportId, ObjectId, OrderId, StoreId};
use crate::ray::order::Order;

/// The orders, by id and by whom they are for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outbox {
    pub(crate) next: OrderId,
    orders: OrdMap<OrderId, Order>,
    /// Derived.
    peers: OrdSet<(Peer, OrderId)>,
    /// The orders to free objects, by store and object. Derived.
    frees: OrdMap<(StoreId, ObjectId), OrderId>,
    /// How many workers are to be told of an export. Derived.
    imports: OrdMap<ExportId, u64>,
}

impl Outbox {
    pub(crate) fn push(&mut self, order: Order) -> OrderId {
        let id = self.next;
        self.next.0 += 1;
        self.restore(id, order);
        id
    }

    pub(crate) fn remove(&mut self, id: OrderId) -> bool {
        let Some(order) = self.orders.remove(&id) else { return false };
        self.peers.remove(&(order.to(), id));
        match order {
            Order::Deallocate { store, object } if self.frees.get(&(store, object)) == Some(&id) => {
                self.frees.remove(&(store, object));
            }
            Order::Import { export, .. } => self.imported(export),
            _ => {}
        }
        true
    }

    /// Has a store free an object, unless it is being told.
    pub(crate) fn free(&mut self, store: StoreId, object: ObjectId) -> bool {
        let fresh = !self.is_freeing(store, object);
        if fresh {
            self.push(Order::Deallocate { store, object });
        }
        fresh
    }

    /// Whether a store is still to be told to free an object.
    pub(crate) fn is_freeing(&self, store: StoreId, object: ObjectId) -> bool {
        self.frees.contains_key(&(store, object))
    }

    /// A store has an object anew: it must not be told any more to free what it had.
    pub(crate) fn keep(&mut self, store: StoreId, object: ObjectId) {
        if let Some(order) = self.frees.get(&(store, object)).copied() {
            self.remove(order);
        }
    }

    /// Whether a worker is still to be told of an export.
    pub(crate) fn is_importing(&self, export: ExportId) -> bool {
        self.imports.contains_key(&export)
    }

    fn imported(&mut self, export: ExportId) {
        let left = self.imports.get(&export).map_or(0, |workers| workers - 1);
        if left == 0 {
            self.imports.remove(&export);
        } else {
            self.imports.insert(export, left);
        }
    }

    /// Nobody is there any more to be told.
    pub(crate) fn forget(&mut self, peer: Peer) {
        let of_peer = self.peers.range((peer, OrderId(0))..=(peer, OrderId(u64::MAX)));
        let ids: Vec<OrderId> = of_peer.map(|(_, id)| *id).collect();
        for id in ids {
            self.remove(id);
        }
    }

    /// What they take, roughly.
    pub(crate) fn bytes(&self) -> u64 {
        let orders = of_map::<OrderId, Order>(self.orders.len());
        let indexes = of_set::<(Peer, OrderId)>(self.peers.len())
            .saturating_add(of_map::<(StoreId, ObjectId), OrderId>(self.frees.len()))
            .saturating_add(of_map::<ExportId, u64>(self.imports.len()));
        orders.saturating_add(indexes)
    }

    pub(crate) fn len(&self) -> usize {
        self.orders.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&OrderId, &Order)> {
        self.orders.iter()
    }

    pub(crate) fn get(&self, id: OrderId) -> Option<&Order> {
        self.orders.get(&id)
    }

    /// Those after the given one.
    pub(crate) fn after(&self, after: Option<OrderId>) -> impl Iterator<Item = (&OrderId, &Order)> {
        let from = after.map_or(OrderId(0), |after| OrderId(after.0.saturating_add(1)));
        self.orders.range(from..)
    }

    /// Puts an order at its place.
    pub(crate) fn restore(&mut self, id: OrderId, order: Order) {
        self.peers.insert((order.to(), id));
        match order {
            Order::Deallocate { store, object } => {
                self.frees.insert((store, object), id);
            }
            Order::Import { export, .. } => *self.imports.entry(export).or_default() += 1,
            _ => {}
        }
        self.orders.insert(id, order);
    }
}

impl std::hash::Hash for Outbox {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.next, &self.orders).hash(state);
    }
}
