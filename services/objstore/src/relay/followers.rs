//! Workers of this machine that take their orders from the store.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

/// Orders for one worker, and where its answer goes. Leaders send them one after the other; during a change of leaders
/// those of both may wait.
#[derive(Debug)]
pub(crate) struct OrderDelivery {
    pub(crate) orders: Bytes,
    pub(crate) answer: oneshot::Sender<Bytes>,
}

/// Messages that wait for one worker: one for each leader that there may be at a time, so none waits for room.
const WAITING_MAX: usize = 16;

type Waiting = HashMap<u64, mpsc::Sender<OrderDelivery>>;

/// The workers that take orders here, by their ids.
#[derive(Debug, Clone, Default)]
pub(crate) struct Followers {
    waiting: Arc<Mutex<Waiting>>,
}

/// One worker's place among them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Follower {
    worker: u64,
    followers: Followers,
    sender: mpsc::Sender<OrderDelivery>,
    orders: mpsc::Receiver<OrderDelivery>,
}

impl Followers {
    /// From now on the worker takes orders here; it may have done so over another connection before.
    pub(crate) fn follow(&self, worker: u64) -> Follower {
        let (sender, orders) = mpsc::channel(WAITING_MAX);
        _ = self.waiting.lock().insert(worker, sender.clone());
        Follower { worker, followers: self.clone(), sender, orders }
    }

    /// How many take their orders here.
    pub(crate) fn count(&self) -> usize {
        self.waiting.lock().len()
    }

    /// The way to a worker that takes orders here.
    pub(crate) fn to(&self, worker: u64) -> Option<mpsc::Sender<OrderDelivery>> {
        self.waiting.lock().get(&worker).cloned()
    }
}

impl Follower {
    pub(crate) async fn next(&mut self) -> Option<OrderDelivery> {
        self.orders.recv().await
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut waiting = self.followers.waiting.lock();
        if waiting.get(&self.worker).is_some_and(|current| current.same_channel(&self.sender)) {
            _ = waiting.remove(&self.worker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_older_connection_does_not_end_a_newer_one_s() {
        let followers = Followers::default();
        let older = followers.follow(3);
        let newer = followers.follow(3);
        drop(older);
        assert!(followers.to(3).is_some());
        drop(newer);
        assert!(followers.to(3).is_none());
    }
}
