//! What workers and stores are still to be told.

use imbl::{OrdMap, OrdSet};

use crate::ray::command::Peer;
use crate::ray::ids::OrderId;
use crate::ray::order::Order;

/// The orders, by id and by whom they are for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outbox {
    pub(crate) next: OrderId,
    orders: OrdMap<OrderId, Order>,
    /// Derived.
    peers: OrdSet<(Peer, OrderId)>,
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
        true
    }

    /// Nobody is there any more to be told.
    pub(crate) fn forget(&mut self, peer: Peer) {
        let of_peer = self.peers.range((peer, OrderId(0))..=(peer, OrderId(u64::MAX)));
        let ids: Vec<OrderId> = of_peer.map(|(_, id)| *id).collect();
        for id in ids {
            self.remove(id);
        }
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
        self.orders.insert(id, order);
    }
}

impl Outbox {
    /// The orders for one peer, in their order.
    pub(crate) fn of(&self, peer: Peer) -> impl Iterator<Item = &Order> {
        let of_peer = self.peers.range((peer, OrderId(0))..=(peer, OrderId(u64::MAX)));
        of_peer.filter_map(|(_, id)| self.orders.get(id))
    }
}

impl std::hash::Hash for Outbox {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.next, &self.orders).hash(state);
    }
}
