//! Hands orders to the lanes of the peers that they are for, in the order of their ids.

use std::collections::{BTreeSet, HashMap};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tripod_state::ray::ids::OrderId;
use tripod_state::ray::{Order, Peer, Ray};

use super::lane;
use super::leader_term::LeaderTerm;

/// Orders that are taken in one look.
const TAKEN_MAX: usize = 512;
/// Lanes of dead peers that are put up with.
const LANES_SPARE: usize = 64;

type Lanes = HashMap<Peer, mpsc::UnboundedSender<(OrderId, Order)>>;

/// Runs until the job has no scheduler any more. Begins with the oldest order: what an earlier leader has given is
/// given again.
pub(super) async fn run(led: LeaderTerm) {
    let mut lanes = Lanes::new();
    // They end with their channels, or with this function.
    let mut running = JoinSet::new();
    let mut after = None;
    let mut clear_at = LANES_SPARE;
    loop {
        let mut changes = led.watch();
        let Some(orders) = led.look(|ray| ray.orders(after, TAKEN_MAX)).await else { return };
        if orders.is_empty() {
            changes.changed().await;
            continue;
        }
        for (id, order) in orders {
            after = Some(id);
            let lane = lanes.entry(order.to()).or_insert_with(|| {
                let (sender, queue) = mpsc::unbounded_channel();
                running.spawn(lane::run(led.clone(), order.to(), queue));
                sender
            });
            // A lane ends only after its channel.
            drop(lane.send((id, order)));
        }
        if lanes.len() >= clear_at {
            clear_at = clear(&led, &mut lanes).await;
        }
        while running.try_join_next().is_some() {}
    }
}

/// Closes the lanes of peers that are dead; what is left in them is still given, as far as it can be. Gives the
/// number of lanes at which this is worth while again.
async fn clear(led: &LeaderTerm, lanes: &mut Lanes) -> usize {
    let living = led.look(Ray::watched).await.unwrap_or_default();
    let living: BTreeSet<Peer> = living.into_iter().map(|watched| watched.peer).collect();
    lanes.retain(|peer, _| living.contains(peer));
    2 * lanes.len() + LANES_SPARE
}
