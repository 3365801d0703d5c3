//! What one node is to be told now.

use std::sync::Arc;

use tripod_state::mindspore::cluster::Order;

use crate::calls::Call;

/// The orders of a node, in their order, and what it is told for the first.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) orders: Vec<Order>,
    pub(super) first: Call,
}

impl Assignment {
    /// The one whose turn it is.
    pub(super) fn order(&self) -> Option<Order> {
        self.orders.first().copied()
    }
}

/// Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Assigned {
    /// How many answers of the node were in the log when this was found. With fewer than it has given, it is about what
    /// the node was told already.
    answered: u64,
    now: Option<Arc<Assignment>>,
}

impl Assigned {
    pub(super) fn after(answered: u64, now: Option<Assignment>) -> Self {
        Self { answered, now: now.map(Arc::new) }
    }

    /// What a node is to be told that has given so many answers.
    pub(super) fn for_one_with(&self, answered: u64) -> Option<Arc<Assignment>> {
        (self.answered == answered).then(|| self.now.clone()).flatten()
    }

    /// Whether an order is still to be carried out.
    pub(super) fn has(&self, order: Order) -> bool {
        self.now.as_ref().is_some_and(|now| now.orders.contains(&order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_before_a_nodes_last_answer_is_not_told_once_more() {
        let order = Order::Finish;
        let first = Call::query(crate::calls::Query::Instance, 0, bytes::Bytes::new());
        let assigned = Assigned::after(2, Some(Assignment { orders: vec![order], first }));
        assert!(assigned.for_one_with(3).is_none());
        assert_eq!(assigned.for_one_with(2).unwrap().order(), Some(order));
        assert!(assigned.has(order) && !assigned.has(Order::Event { sequence: 1, event: 1 }));
    }
}
