//! Hands orders to the queues of the peers that they are for, in the order of their ids.

use std::collections::{BTreeSet, HashMap};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tripod_state::ray::ids::OrderId;
use tripod_state::ray::{Order, Peer, Ray};

use super::leader_term::LeaderTerm;
use super::order_queue;

/// Orders that are taken in one look.
const TAKEN_MAX: usize = 512;
/// Queues of dead peers that are put up with.
const QUEUES_SPARE: usize = 64;

type OrderQueues = HashMap<Peer, mpsc::UnboundedSender<(OrderId, Order)>>;

/// Runs until the job has no scheduler any more. Begins with the oldest order: what an earlier leader has given is
/// given again.
pub(super) async fn run(led: LeaderTerm) {
    let mut queues = OrderQueues::new();
    // They end with their channels, or with this function.
    let mut running = JoinSet::new();
    let mut after = None;
    let mut clear_at = QUEUES_SPARE;
    loop {
        let mut changes = led.watch();
        let Some(orders) = led.look(|ray| ray.orders(after, TAKEN_MAX)).await else { return };
        if orders.is_empty() {
            changes.changed().await;
            continue;
        }
        for (id, order) in orders {
            after = Some(id);
            let queue = queues.entry(order.to()).or_insert_with(|| {
                let (sender, waiting) = mpsc::unbounded_channel();
                running.spawn(order_queue::run(led.clone(), order.to(), waiting));
                sender
            });
            // Its task ends only after its channel.
            drop(queue.send((id, order)));
        }
        if queues.len() >= clear_at {
            clear_at = clear(&led, &mut queues).await;
        }
        while running.try_join_next().is_some() {}
    }
}

/// Closes the queues of peers that are dead; what is left in them is still given, as far as it can be. Gives the
/// number of queues at which this is worth while again.
async fn clear(led: &LeaderTerm, queues: &mut OrderQueues) -> usize {
    let living = led.look(Ray::watched).await.unwrap_or_default();
    let living: BTreeSet<Peer> = living.into_iter().map(|watched| watched.peer).collect();
    queues.retain(|peer, _| living.contains(peer));
    2 * queues.len() + QUEUES_SPARE
}
