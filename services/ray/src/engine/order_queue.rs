//! The orders for one peer, one after the other: an import is there before the task that needs it.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tripod_backoff::Backoff;
use tripod_state::ray::ids::OrderId;
use tripod_state::ray::{Order, Peer};

use super::clerk::Finished;
use super::leader_term::LeaderTerm;
use super::order::{Ready, Sent};
use super::order_stream::OrderStream;

/// Between attempts.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
/// After so long without a connection a task is given to another worker. Shorter than any time to live: the worker
/// may be slow to begin, but its tasks need not wait until it is given up.
const UNREACHABLE_MAX: Duration = Duration::from_secs(2);

/// Orders of one call, and the bytes that they may have together.
const TOLD_MAX: usize = 256;
const TOLD_BYTES_MAX: usize = 1 << 20;

/// What is to be done with an order after an attempt.
enum Next {
    /// It need not be given any more, and this is noted.
    Note(Finished),
    /// It is left in the state for a new leader, or until a report shows that it was carried out.
    Leave,
    Again,
}

/// Runs until the channel is closed and empty.
pub(super) async fn run(led: LeaderTerm, peer: Peer, mut queue: mpsc::UnboundedReceiver<(OrderId, Order)>) {
    let mut backoff = BACKOFF;
    let (mut fresh, mut waiting) = (Vec::new(), VecDeque::new());
    let mut stream = match peer {
        Peer::Worker(worker) => Some(OrderStream::to(worker)),
        Peer::Store(_) => None,
    };
    while !waiting.is_empty() || queue.recv_many(&mut fresh, TOLD_MAX).await > 0 {
        waiting.extend(fresh.drain(..));
        give_many(&led, peer, &mut waiting, stream.as_mut()).await;
        let Some((id, order)) = waiting.pop_front() else { continue };
        if give(&led, peer, id, &order).await {
            backoff.reset();
        } else {
            // What is planned instead may come to the same peer at once, and be refused as fast.
            backoff.rest().await;
        }
    }
}

/// Gives those that wait in one call, if the peer is one of ours. What is left is for [`give`].
async fn give_many(
    led: &LeaderTerm,
    peer: Peer,
    waiting: &mut VecDeque<(OrderId, Order)>,
    stream: Option<&mut OrderStream>,
) {
    let stream = stream.filter(|stream| stream.is_usable());
    if (waiting.len() < 2 && stream.is_none()) || !is_extended(led, peer).await {
        return;
    }
    let unfit = led.memory.unfit(led.job);
    let opens = stream.as_ref().is_some_and(|stream| !stream.is_open());
    let look = |state: &tripod_state::State, ray: &tripod_state::ray::Ray| {
        let ready = |(id, order): &(OrderId, Order)| {
            ray.has_order(*id)
                .then(|| Ready::of(state, ray, (led.job, led.node), &unfit, order))
                .flatten()
                .filter(Ready::is_whole)
        };
        let mut bytes = 0;
        let fits = |ready: &Ready| {
            bytes += ready.size_bytes();
            bytes <= TOLD_BYTES_MAX
        };
        // From one on that need not be given any more, the others come later.
        let ready = waiting.iter().map_while(ready).take_while(fits).collect::<Vec<_>>();
        (ready, opens.then(|| store_of(ray, peer)).flatten())
    };
    let Some((ready, store)) = led.look_around(look).await else { return };
    let mut taken = match stream {
        Some(stream) => stream.tell(&ready, store.as_deref(), &led.links).await,
        None => 0,
    };
    if taken == 0 && ready.len() > 1 && !led.links.is_plain(&ready[0].address) {
        let told = Ready::send_all(&ready, &led.links).await;
        if told.plain {
            led.links.note_plain(&ready[0].address);
        }
        taken = told.taken;
    }
    for (id, _) in waiting.drain(..taken) {
        led.finish(Finished::Done(id));
    }
}

/// Where the object store of a worker is.
fn store_of(ray: &tripod_state::ray::Ray, peer: Peer) -> Option<String> {
    let Peer::Worker(worker) = peer else { return None };
    Some(ray.store(ray.worker(worker)?.store)?.address)
}

/// Gives one order until the peer has it, or it is not to be given any more: `false` if the peer does not take it.
async fn give(led: &LeaderTerm, peer: Peer, id: OrderId, order: &Order) -> bool {
    let began = Instant::now();
    let mut backoff = BACKOFF;
    loop {
        let Some(outstanding) = outstanding(led, id, order).await else { return true };
        let Some(ready) = outstanding else {
            led.finish(Finished::Done(id));
            return true;
        };
        let sent = ready.send(&led.links).await;
        if let (Peer::Store(store), Sent::Unreachable(_) | Sent::Doubtful(_)) = (peer, &sent) {
            led.shaken.note(store);
        }
        let extended = !matches!(sent, Sent::Doubtful(_)) || is_extended(led, peer).await;
        match after(id, order, &sent, extended, began.elapsed()) {
            Next::Note(finished) => {
                let taken = matches!(sent, Sent::Taken);
                if !taken {
                    tracing::info!(
                        job = led.job.0,
                        ?order,
                        address = ready.address,
                        %sent,
                        "order given up"
                    );
                }
                led.finish(finished);
                return taken;
            }
            Next::Leave => {
                tracing::info!(
                    job = led.job.0,
                    ?order,
                    address = ready.address,
                    %sent,
                    "order may be lost"
                );
                return true;
            }
            Next::Again => {
                tracing::debug!(
                    job = led.job.0,
                    ?order,
                    address = ready.address,
                    %sent,
                    "order is given again"
                );
                backoff.rest().await;
            }
        }
    }
}

/// The order, ready to be sent. The outer `None`: the state has it no more; the inner one: what it is about is over.
#[allow(clippy::option_option, reason = "the two are different things to do")]
async fn outstanding(led: &LeaderTerm, id: OrderId, order: &Order) -> Option<Option<Ready>> {
    let unfit = led.memory.unfit(led.job);
    let look = |state: &tripod_state::State, ray: &tripod_state::ray::Ray| {
        ray.has_order(id).then(|| Ready::of(state, ray, (led.job, led.node), &unfit, order))
    };
    led.look_around(look).await.flatten()
}

async fn is_extended(led: &LeaderTerm, peer: Peer) -> bool {
    match peer {
        Peer::Worker(worker) => {
            let found = led.look(|ray| ray.worker(worker)).await.flatten();
            found.is_some_and(|worker| worker.extended)
        }
        // Whatever a store is told can be told again.
        Peer::Store(_) => true,
    }
}

/// The rules; `extended` counts only for what is doubtful. Only tasks for workers of 2016 must not be given twice by
/// one leader: those would run twice.
fn after(id: OrderId, order: &Order, sent: &Sent, extended: bool, elapsed: Duration) -> Next {
    let lost = elapsed >= UNREACHABLE_MAX;
    match (order, sent) {
        (_, Sent::Taken) => Next::Note(Finished::Done(id)),
        (_, sent) if sent.is_busy() => Next::Again,
        (Order::Execute { .. }, Sent::Doubtful(_)) if !extended => Next::Leave,
        (Order::Execute { run, .. }, Sent::Unreachable(_)) if lost => Next::Note(Finished::Undelivered(*run)),
        // Another process listens there, or it takes no tasks any more: a moment later it may be known to be dead.
        (Order::Execute { run, .. }, Sent::Refused(_)) if lost => Next::Note(Finished::Undelivered(*run)),
        (Order::Execute { .. }, Sent::Refused(_)) => Next::Again,
        (Order::Deliver { store, object, .. }, Sent::Refused(_)) => {
            Next::Note(Finished::DeliveryFailed { order: id, store: *store, object: *object })
        }
        // Who is gone need not be ended.
        (Order::Die { .. }, Sent::Unreachable(_) | Sent::Doubtful(_)) if lost => {
            Next::Note(Finished::Done(id))
        }
        // A peer of 2016 may refuse for reasons of its own, and would again.
        (_, Sent::Refused(_)) => Next::Note(Finished::Done(id)),
        (_, Sent::Unreachable(_) | Sent::Doubtful(_)) => Next::Again,
    }
}
