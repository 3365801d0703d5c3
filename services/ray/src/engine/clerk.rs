//! Notes in the log what was carried out, many orders at a time: until then a new leader would give them again, which
//! is harmless, so nothing waits for it.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tripod_state::ray::ids::{ObjectId, OrderId, StoreId};
use tripod_state::ray::{Decision, Run};

use super::leader_term::LeaderTerm;

/// Notes of one command, and how long the first of them waits for others. One command is under way at a time, so there
/// must be room for all that is carried out meanwhile: with 256 the orders of a busy job piled up.
const NOTES_MAX: usize = 4_096;
const GATHER: Duration = Duration::from_millis(10);
/// Between attempts of a note that did not come into the log.
const PAUSE: Duration = Duration::from_millis(100);

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finished {
    /// It was carried out, or need not be any more.
    Done(OrderId),
    /// The task did not reach its worker.
    Undelivered(Run),
    /// The object could not be fetched where the order said.
    DeliveryFailed { order: OrderId, store: StoreId, object: ObjectId },
}

/// Runs until nobody finishes anything any more.
pub(super) async fn run(led: LeaderTerm, mut notes: mpsc::UnboundedReceiver<Finished>) {
    let mut gathered = Vec::new();
    while let Some(first) = notes.recv().await {
        gathered.push(first);
        let until = Instant::now() + GATHER;
        while gathered.len() < NOTES_MAX {
            match tokio::time::timeout_at(until, notes.recv()).await {
                Ok(Some(next)) => gathered.push(next),
                Ok(None) | Err(_) => break,
            }
        }
        for decision in decisions(std::mem::take(&mut gathered)) {
            while led.decide(decision.clone()).await.is_none() {
                if led.look(|_| ()).await.is_none() {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// What failed first: an order that was noted as done is not known any more.
fn decisions(notes: Vec<Finished>) -> Vec<Decision> {
    let (mut orders, mut runs, mut decisions) = (Vec::new(), Vec::new(), Vec::new());
    for note in notes {
        match note {
            Finished::Done(order) => orders.push(order),
            Finished::Undelivered(run) => runs.push(run),
            Finished::DeliveryFailed { order, store, object } => {
                decisions.push(Decision::DeliveryFailed { store, object });
                orders.push(order);
            }
        }
    }
    if !runs.is_empty() {
        decisions.push(Decision::Undelivered { runs });
    }
    if !orders.is_empty() {
        decisions.push(Decision::Done { orders });
    }
    decisions
}

#[cfg(test)]
mod tests {
    use tripod_state::ray::ids::{Attempt, OperationId};

    use super::*;

    #[test]
    fn what_was_done_is_one_decision_and_comes_last() {
        let run = Run { operation: OperationId(1), attempt: Attempt(1) };
        let (store, object) = (StoreId(2), ObjectId(3));
        let failed = Finished::DeliveryFailed { order: OrderId(5), store, object };
        let notes =
            vec![Finished::Done(OrderId(4)), failed, Finished::Undelivered(run), Finished::Done(OrderId(6))];
        assert_eq!(
            decisions(notes),
            [
                Decision::DeliveryFailed { store, object },
                Decision::Undelivered { runs: vec![run] },
                Decision::Done { orders: vec![OrderId(4), OrderId(5), OrderId(6)] },
            ]
        );
    }
}
